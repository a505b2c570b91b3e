import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../../core/base/errors';
import { duration, flag, list, word } from '../../core/base/setting-schemas';
import { parseDuration } from '../../core/base/settings';
import type { ModelRequest } from '../../core/calls/call';
import { demandsIn, demandsUnder } from '../../core/calls/demanded';
import { agentOf, sessionOf } from '../../core/calls/session-ids';
import { type CallIds, type CallTags, tagsInHead, tagsText } from '../../core/calls/tags';
import { UNPRICED_TOOLS } from '../../core/catalog/catalog';
import type { Demands } from '../../core/catalog/demands';
import { forEachProtocol } from '../../core/catalog/protocols';
import { type CallWith, definePolicy } from '../../core/gateway/policy';
import type { BodyLimits } from '../../core/http/read-body';
import { oncePerHead } from '../../core/http/repeated-head';
import { SHARED_OBJECTS, type SharedObject } from '../../core/protocols/request-table';
import { REQUEST_TABLES } from '../../core/protocols/request-tables';
import { openAddressGate } from './address-gate';
import { headersForUpstreams } from './forwarded-headers';
import { callRules } from './observe-call';
import { RequestReader, type RequestSettings } from './read-request';
import { acceptedRoles } from './roles';

/** The limits of a request body (docs/contract.md, section 10). Its time limits are settings. */
export const REQUEST_BODY_LIMITS: Omit<BodyLimits, 'totalMs' | 'slowMs'> = {
  maxBytes: 20_971_520,
  minBytesPerSecond: 1_024,
};

export default definePolicy({
  contract: 'policy/1',
  name: 'model-request',
  summary: 'What does the call request?',
  schema: {
    type: 'object',
    properties: {
      forwardHeaderPrefixes: list(
        'Headers whose names begin with one of these are forwarded in both directions.',
        { type: 'string', pattern: '^[a-z0-9][a-z0-9-]*-$' },
        { default: ['anthropic-', 'protoa-'] },
      ),
      roles: list(
        'Roles accepted in the `messages` of a Messages call.',
        { type: 'string', enum: REQUEST_TABLES.messages.roles },
        { minItems: 1, uniqueItems: true, default: REQUEST_TABLES.messages.roles },
      ),
      sharedObjects: list(
        'Kinds of objects at the vendor that every customer may name by id. Otherwise a thread, container, response or item must belong to the same account, and other kinds are rejected with 400.',
        { type: 'string', enum: SHARED_OBJECTS },
        { uniqueItems: true, default: [] },
      ),
      unknownMembers: word(
        'How to treat unknown top-level members. `byValue` forwards them and holds the context window for each, but at an upstream of the tier `official` not for switches, numbers up to 1 and short words; `hold` holds it for each, `forward` for none, `refuse` answers 400.',
        ['forward', 'byValue', 'hold', 'refuse'],
        { default: 'byValue' },
      ),
      unpricedTools: word(
        'How to treat tools and members that a vendor charges apart and for which no candidate has a price. `forward` sends them on, holds nothing for them and flags what is used; `refuse` answers 400. An upstream may refuse them alone.',
        UNPRICED_TOOLS,
        { default: 'forward' },
      ),
      recordSessions: flag(
        'Writes the session, the agent and the end user that a client names into the usage record.',
        { default: true },
      ),
      bodyTimeout: duration('Deadline for the whole body.', { default: '120s' }),
      slowBodyTimeout: duration('How long a body may arrive slower than 1 KB/s.', { default: '30s' }),
    },
  },
  needs: ['key'],
  provides: ['request'],
  boundsItself: true,
  prepare: (own, gateway) => {
    const { upstreams } = gateway.catalog;
    const accepted = acceptedRoles(own.roles);
    const shared = new Set<SharedObject>(own.sharedObjects);
    const gate = openAddressGate(upstreams);
    const idOf = (id: string | undefined) => (id === undefined ? undefined : gateway.sessionIds.recorded(id));
    const meaningOf = oncePerHead(({ headers }) => {
      const session = sessionOf(headers);
      const ids = { session: idOf(session), agent: idOf(agentOf(headers)), end_user: undefined };
      return {
        headers: Object.freeze(headersForUpstreams(headers, own.forwardHeaderPrefixes)),
        session,
        ids,
        ...givenIn(headers, ids),
      };
    });
    const settings: RequestSettings = {
      prefixes: own.forwardHeaderPrefixes,
      limits: {
        ...REQUEST_BODY_LIMITS,
        totalMs: parseDuration(own.bodyTimeout),
        slowMs: parseDuration(own.slowBodyTimeout),
      },
      members: {
        shared,
        unknownMembers: own.unknownMembers,
        freeMembers: new Set(upstreams.flatMap(({ freeMembers }) => [...(freeMembers ?? [])])),
      },
      refusesUnpriced: own.unpricedTools === 'refuse',
      rules: forEachProtocol((protocol) => callRules(protocol, accepted[protocol], shared, gate)),
      isolatesCaches: upstreams.some(({ isolateCaches }) => isolateCaches === true),
    };
    const left = ({ facts }: CallWith<'key'>, request: ModelRequest) => {
      if (own.recordSessions) {
        facts.sessionId ??= idOf(request.session);
        facts.endUserId = request.endUser;
      }
      return { request };
    };
    return (call, incoming) => {
      const { facts } = call;
      // What the head names is set before the body is read, because a call with a rejected body also belongs to its session.
      const head = meaningOf(incoming);
      if (own.recordSessions) {
        facts.sessionId = head.ids.session;
        facts.agentId = head.ids.agent;
      }
      facts.demands = demandsUnder(call.key.settings, head);
      if (head.fault !== undefined) throw head.fault;
      facts.tags = head.own;
      const request = new RequestReader(gateway, call, incoming, head, settings).read();
      return request instanceof Promise ? request.then((read) => left(call, read)) : left(call, request);
    };
  },
});

/** Returns the tags and demands that a request's head gives, and all tags as the ledger gets them; `fault` is why they are refused. */
function givenIn(headers: IncomingHttpHeaders, ids: CallIds): GivenByHead {
  try {
    const own = tagsInHead(headers);
    return { own, text: tagsText(own, ids), demands: demandsIn(headers), fault: undefined };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { own: undefined, text: undefined, demands: undefined, fault: error };
  }
}

interface GivenByHead {
  readonly own: CallTags | undefined;
  readonly text: string | undefined;
  readonly demands: Demands | undefined;
  readonly fault: GatewayError | undefined;
}
