import type { IncomingMessage } from 'node:http';
import { asksUpstream, pipelineAt } from '../../core/asked-upstreams';
import type { CallKey } from '../../core/call';
import { isAllowed, type Model } from '../../core/catalog';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { KeyHandler, Route } from '../../core/plugin';
import { hostOf } from '../../core/request-target';
import { routableEntries } from '../../core/routable-entries';
import { listOf, object, oneOf, orNull, shape } from '../../core/shape';
import { MODEL, toJson } from './model';

/** Clients ask below the base address they call. */
const PREFIXES = ['', '/default', '/quality', '/speed', '/cost'];
const CALLS = ['/v1/messages', '/v1/chat/completions'];

/**
 * What this key can call now. The configuration is read with each request: it changes. A model the key may not call is not there
 * for it, nor is one that no pipeline of this address asks an upstream for.
 */
export function modelRoutes(gateway: Pick<Gateway, 'catalog' | 'configuration' | 'health'>): Route[] {
  return PREFIXES.flatMap((prefix) => routesBelow(prefix, gateway));
}

function routesBelow(prefix: string, gateway: Pick<Gateway, 'catalog' | 'configuration' | 'health'>): Route[] {
  const shower = (key: CallKey, request: IncomingMessage) => {
    const { catalog, configuration, health } = gateway;
    const pipelines = CALLS.map((path) => pipelineAt(configuration.pipelines, hostOf(request), prefix + path));
    const mayAsk = pipelines.flatMap((each) => (each === undefined ? [] : [asksUpstream(each)]));
    return (model: Model) => {
      const entries = routableEntries(model, health).filter(({ upstream }) =>
        mayAsk.some((asks) => asks(upstream.name)),
      );
      const isCallable = entries.length > 0 && isAllowed(catalog, entries, key.settings.allowedModels);
      return isCallable ? toJson(model, entries, health) : undefined;
    };
  };

  const list: KeyHandler = async ({ key }, request, response) => {
    const show = shower(key, request);
    const data = gateway.catalog.models.flatMap((model) => show(model) ?? []);
    sendJson(response, 200, {
      object: 'list',
      data,
      first_id: data.at(0)?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
      has_more: false,
    });
  };

  const showOne: KeyHandler = async ({ params, key }, request, response) => {
    const lookup = gateway.catalog.find(params['id'] ?? '');
    if ('ambiguous' in lookup) throw fail('MODEL_AMBIGUOUS', { details: { models: lookup.ambiguous } });
    const shown = 'found' in lookup ? shower(key, request)(lookup.found) : undefined;
    if (shown === undefined) throw fail('NOT_FOUND', { message: 'There is no such model.' });
    sendJson(response, 200, shown);
  };

  return [
    {
      listener: 'public',
      auth: 'key',
      method: 'GET',
      path: `${prefix}/v1/models`,
      summary: 'Every model this key can call now.',
      answers: {
        200: {
          description: 'The models, in the shape both SDKs read.',
          schema: object({
            object: oneOf('list'),
            data: listOf(MODEL),
            first_id: orNull(shape.text),
            last_id: orNull(shape.text),
            has_more: shape.yes,
          }),
        },
      },
      handle: list,
    },
    {
      listener: 'public',
      auth: 'key',
      method: 'GET',
      path: `${prefix}/v1/models/{id...}`,
      summary: 'One model; its name may hold slashes.',
      answers: { 200: { description: 'The model.', schema: MODEL } },
      errors: ['MODEL_AMBIGUOUS'],
      handle: showOne,
    },
  ];
}
