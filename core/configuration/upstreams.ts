import { formatUsd, MAX_AMOUNT_E8 } from '../base/money';
import { type Check, compileCheck, type Problem, parseDuration } from '../base/settings';
import { adapterNames, findAdapter } from '../catalog/adapters';
import {
  buildCatalog,
  type Catalog,
  CatalogProblem,
  type ModelEntry,
  protocolsOf,
  type Reporting,
  type Upstream,
} from '../catalog/catalog';
import type { CustomerPriceList } from '../catalog/customer-prices';
import { maxModelCost } from '../catalog/price';
import type { UpstreamAdapter } from '../catalog/upstream';
import { type CredentialReading, readCredentials, readSecret } from './credentials';
import { checkDays, readFacts } from './facts';
import { readDecimal, readPrice, reportTo } from './prices';
import { hint, type LocatedProblem, withHint } from './problems';
import { RotatingCredential } from './rotating-credential';
import type { GatewaySettings, ModelSettings, ServiceEndpointSettings } from './schema';

/** Returns the upstreams with their adapters, credentials, models and prices. */
export function readUpstreams(gateway: GatewaySettings, reading: CredentialReading): Upstream[] {
  const { problems } = reading;
  return Object.entries(gateway.serviceEndpoints).flatMap(([name, settings]) => {
    const path = ['serviceEndpoints', name];
    if (!URL.canParse(settings.url)) {
      problems.push({ path: [...path, 'url'], message: 'is not a valid URL' });
      return [];
    }
    const adapters = readAdapters(path, settings, problems);
    const adapterSettings = readAdapterSettings(path, adapters, settings.adapterSettings ?? {}, problems);
    const credentials = readCredentials(path, settings, reading);
    const upstream: Upstream = {
      name,
      url: new URL(settings.url),
      adapters,
      adapterSettings,
      credentials,
      credential: credentials[0],
      disabled: disabledBy(credentials),
      tier: settings.tier,
      weight: settings.weight,
      maxConcurrent: settings.maxConcurrent,
      allowPrivate: settings.allowPrivate,
      timeouts: readTimeouts(path, settings, problems),
      streamUsage: settings.streamUsage,
      webSocket: settings.webSocket,
      traceContext: settings.traceContext,
      translate: settings.translate,
      versions: settings.versions && new Set(settings.versions),
      ignoreUsage: new Set(settings.ignoreUsage),
      stopsOnCancel: settings.stopsOnCancel,
      isolateCaches: settings.isolateCaches,
      freeMembers: new Set(settings.freeMembers),
      unpricedTools: settings.unpricedTools,
      reporting: readReporting(path, settings, reading),
      models: Object.entries(settings.models).map(([model, each]) =>
        readModel([...path, 'models', model], model, each, settings.facts, problems),
      ),
    };
    checkDays([...path, 'facts'], settings.facts, problems);
    checkProtocols(path, upstream, problems);
    if (settings.webSocket && adapters.some(({ sign }) => sign !== undefined))
      problems.push({
        path: [...path, 'webSocket'],
        message: 'is not supported with an adapter that signs each request',
      });
    return [upstream];
  });
}

/** Returns why an upstream has no credential; undefined if it has one, or has a rotating credential that can still be fetched. */
function disabledBy(credentials: Upstream['credentials']): string | undefined {
  const isHopeless = credentials.every((each) => each.missing !== undefined && !(each instanceof RotatingCredential));
  return isHopeless ? credentials.map(({ missing }) => missing).join('; ') : undefined;
}

function readAdapters(
  path: readonly string[],
  { adapter }: ServiceEndpointSettings,
  problems: LocatedProblem[],
): UpstreamAdapter[] {
  return [adapter].flat().flatMap((name) => {
    const found = findAdapter(name);
    if (found !== undefined) return [found];
    problems.push({
      path: [...path, 'adapter'],
      message: `adapter "${name}" does not exist${hint(name, adapterNames())}`,
    });
    return [];
  });
}

/**
 * Returns the settings with the adapters' defaults. All adapters of an upstream share its settings. A setting's name is a mistake only if
 * no adapter knows it.
 */
function readAdapterSettings(
  path: readonly string[],
  adapters: readonly UpstreamAdapter[],
  settings: object,
  problems: LocatedProblem[],
): object {
  const checked = adapters.map(({ schema }) => checkKnown(compileCheck<object>(schema), settings));
  const unknown = checked.map((each) => new Map(each.unknown.map(byWords)));
  const nowhereKnown = [...(unknown[0] ?? [])].filter(([words]) => unknown.every((each) => each.has(words)));
  const wrong = checked.flatMap(({ result }) => ('problems' in result ? result.problems.map(byWords) : []));
  for (const problem of new Map([...nowhereKnown, ...wrong]).values())
    problems.push({ ...withHint(problem), path: [...path, 'adapterSettings', ...problem.path] });
  return Object.assign({}, settings, ...checked.map(({ result }) => ('value' in result ? result.value : {})));
}

/** Checks only those settings that an adapter knows. */
function checkKnown(check: Check<object>, settings: object) {
  const whole = check(settings);
  const found = 'problems' in whole ? whole.problems : [];
  const unknown = found.filter((each) => each.path.length === 1 && each.unknown === each.path[0]);
  const names = new Set(unknown.map((each) => each.unknown));
  const known = Object.fromEntries(Object.entries(settings).filter(([name]) => !names.has(name)));
  return { unknown, result: unknown.length === 0 ? whole : check(known) };
}

function byWords(problem: Problem): readonly [string, Problem] {
  return [`${problem.path.join('/')} ${problem.message}`, problem];
}

/** Checks that the upstream's adapters serve each model in at least one protocol, and in every protocol that the model's settings name. */
function checkProtocols(path: readonly string[], upstream: Upstream, problems: LocatedProblem[]): void {
  if (upstream.adapters.length === 0) return;
  for (const model of upstream.models) {
    const at = [...path, 'models', model.name];
    const served = protocolsOf({ upstream, model });
    for (const [index, protocol] of (model.protocols ?? []).entries()) {
      if (served.includes(protocol)) continue;
      const isSpoken = upstream.adapters.some(({ protocols }) => protocols.includes(protocol));
      const message = isSpoken
        ? 'contradicts maxOutput, which is 0 only for models of embeddings'
        : 'no adapter of the upstream speaks it';
      problems.push({ path: [...at, 'protocols', index], message });
    }
    if (served.length > 0 || model.protocols !== undefined) continue;
    if (model.maxOutput > 0 && upstream.adapters.some(({ own }) => own !== undefined)) continue;
    const message =
      model.maxOutput === 0
        ? '0 is for models of embeddings, and no adapter of the upstream speaks that protocol'
        : "expected 0, because the upstream's adapters speak no protocol but embeddings";
    problems.push({ path: [...at, 'maxOutput'], message });
  }
}

/** The longest permitted timeout for connecting and for response headers; docs/contract.md, section 10. */
const MAX_CONNECTION_MS = 120_000;

function readTimeouts(
  path: readonly string[],
  settings: ServiceEndpointSettings,
  problems: LocatedProblem[],
): Upstream['timeouts'] {
  const { connect, headers, firstToken, idle, answer } = settings.timeouts;
  const connectMs = parseDuration(connect);
  const headersMs = parseDuration(headers);
  for (const [name, value] of Object.entries({ connect: connectMs, headers: headersMs })) {
    if (value > MAX_CONNECTION_MS)
      problems.push({ path: [...path, 'timeouts', name], message: 'expected at most 120s' });
  }
  return {
    connectMs,
    headersMs,
    firstTokenMs: firstToken === undefined ? undefined : parseDuration(firstToken),
    idleMs: parseDuration(idle),
    answerMs: parseDuration(answer),
  };
}

function readModel(
  path: readonly string[],
  name: string,
  settings: ModelSettings,
  ofUpstream: ServiceEndpointSettings['facts'],
  problems: LocatedProblem[],
): ModelEntry {
  const { aliases, context, maxOutput, protocols, translate, reasoning } = settings;
  checkDays([...path, 'facts'], settings.facts, problems);
  const facts = readFacts({ ...ofUpstream, ...settings.facts }, settings.created);
  const { tokenizerFactor, normalizes, toolOverheadTokens } = settings;
  const imageTokens = byDetail(settings.imageTokens);
  const bounds = { imageByUrl: settings.bounds.imageByUrl, documentByUrl: settings.bounds.documentByUrl };
  const estimatedMaxTokens = settings.estimatedMaxTokens ?? Math.min(4_096, maxOutput);
  if (estimatedMaxTokens > maxOutput)
    problems.push({
      path: [...path, 'estimatedMaxTokens'],
      message: `expected at most the value of maxOutput (${maxOutput})`,
    });
  const price = readPrice(path, settings, problems);
  const most = maxModelCost({ context, maxOutput }, price);
  if (most > MAX_AMOUNT_E8) {
    const message = `one call could cost USD ${formatUsd(most)}, more than the ledger can count (USD ${formatUsd(MAX_AMOUNT_E8)})`;
    problems.push({ path: [...path, 'price'], message });
  }
  const toolUses = settings.toolUses && new Map(Object.entries(settings.toolUses));
  const held = { bounds, imageTokens, tokenizerFactor, normalizes, toolOverheadTokens, toolUses };
  return {
    name,
    aliases,
    context,
    maxOutput,
    protocols,
    translate,
    reasoning,
    estimatedMaxTokens,
    ...held,
    price,
    facts,
    created: settings.created ?? facts?.released,
  };
}

/** Returns how many tokens an image has at each detail level. A level without a setting gets the largest of the configured values. */
function byDetail(given: ModelSettings['imageTokens']): ModelEntry['imageTokens'] {
  const named = typeof given === 'number' ? { most: given } : given;
  const most = Math.max(...Object.values(named));
  return { low: most, high: most, original: most, auto: most, most, ...named };
}

/** Builds the catalog of models. Returns undefined and adds a problem if an upstream uses one name for two models. */
export function readCatalog(
  upstreams: readonly Upstream[],
  customerPrices: ReadonlyMap<string, CustomerPriceList>,
  problems: LocatedProblem[],
): Catalog | undefined {
  try {
    return buildCatalog(upstreams, customerPrices);
  } catch (error) {
    if (!(error instanceof CatalogProblem)) throw error;
    problems.push({ path: ['serviceEndpoints', error.upstream, 'models', error.model], message: error.message });
    return undefined;
  }
}

/** The vendors whose usage reports the gateway can read, by the name of the adapter for that vendor. */
const VENDOR_OF_ADAPTER: Readonly<Record<string, Reporting['vendor']>> = {
  messages: 'anthropic',
  chat: 'openai',
  embeddings: 'openai',
};

/** Returns how to fetch the vendor's usage reports; undefined if that is not configured or has mistakes. Adds mistakes to `problems`. */
function readReporting(
  upstream: readonly string[],
  { reporting, adapter, url, credentials = [] }: ServiceEndpointSettings,
  reading: CredentialReading,
): Reporting | undefined {
  if (reporting === undefined) return undefined;
  const path = [...upstream, 'reporting'];
  const { problems } = reading;
  const credential = readSecret(reporting.credential, reading);
  if ('problem' in credential)
    problems.push({ path: [...path, 'credential', credential.at], message: credential.problem });
  const [first = ''] = [adapter].flat();
  const vendor = reporting.vendor ?? VENDOR_OF_ADAPTER[first];
  if (vendor === undefined)
    problems.push({
      path,
      message: `add \`vendor\`: the adapter "${first}" does not determine the vendor of the reports`,
    });
  if (reporting.apiKeyId !== undefined && credentials.length > 1)
    problems.push({
      path: [...path, 'apiKeyId'],
      message: 'names one API key, but the upstream has several credentials: remove `apiKeyId`',
    });
  const base = reporting.url ?? url;
  if (!URL.canParse(base)) problems.push({ path: [...path, 'url'], message: 'is not a valid URL' });
  const alarmAboveE8 = readDecimal(reporting.alarmAboveUsd, ['alarmAboveUsd'], reportTo(problems, path));
  if (vendor === undefined || !URL.canParse(base)) return undefined;
  return {
    vendor,
    url: new URL(base),
    credential: 'value' in credential ? credential.value : undefined,
    missing: 'missing' in credential ? credential.missing : undefined,
    apiKeyId: reporting.apiKeyId,
    workspaceId: reporting.workspaceId,
    alarmAboveE8,
  };
}
