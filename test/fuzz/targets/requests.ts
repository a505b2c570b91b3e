import assert from 'node:assert/strict';
import { asObject, type JsonObject } from '../../../core/base/json-values';
import { type Conversation, NotTranslatable } from '../../../core/catalog/conversation';
import { schemaOf } from '../../../core/protocols/text-tools';
import type { Random } from '../../support/random';
import { mutateJson } from '../mutate';
import { requestOf } from '../translation/client-requests';
import {
  CANDIDATES,
  CLIENTS,
  type Client,
  DIALECTS,
  MODEL,
  UPSTREAM,
  UPSTREAMS,
  type Upstream,
} from '../translation/directions';
import { plant } from '../translation/marks';
import { geminiMeaning, type Meaning, meaningOf, refusedAt } from '../translation/meaning';
import { randomTalk } from '../translation/talk';
import type { Target } from './target';

const MAX_OUTPUT = 8_000;

/**
 * Translates requests in each of the nine directions. Each must arrive whole or be refused by name: nothing is lost silently, and nothing crashes.
 */
export const requests: Target = {
  name: 'requests',
  summary: 'requests that are translated',
  isOfGateway: false,
  run: async (_, random) => {
    for (const client of CLIENTS) {
      const talk = randomTalk(random, client);
      const body = requestOf(random, client, talk);
      const read = DIALECTS[client].readRequest(body);
      same(meaningOf(read), meaningOf(talk), `${client} is read otherwise`, body);
      for (const upstream of UPSTREAMS) if (upstream !== client) keepsMeaning(talk, read, client, upstream);
      for (let each = 0; each < 5; each += 1) losesNothing(random, client, body);
      staysUp(client, changed(random, body));
      staysUp(client, deepened(random, body));
    }
  },
};

function same(actual: unknown, expected: unknown, what: string, given: unknown): void {
  assert.deepEqual(actual, expected, `${what}: ${JSON.stringify(given)}`.slice(0, 3_000));
}

/** Returns the body that the gateway sends, as JSON. */
export function written(conversation: Conversation, upstream: Upstream): JsonObject {
  const call = { conversation, model: MODEL, maxOutput: MAX_OUTPUT, upstream: UPSTREAM, reasoning: 'effort' } as const;
  const own = CANDIDATES[upstream].adapter.own;
  const body =
    own === undefined
      ? DIALECTS[upstream as Client].writeRequest(call)
      : own.request(call, { version: 'v1beta' } as never).body;
  return JSON.parse(JSON.stringify(body)) as JsonObject;
}

function keepsMeaning(talk: Conversation, read: Conversation, client: Client, upstream: Upstream): void {
  const refused = refusedAt(upstream, talk);
  const direction = `${client} to ${upstream}`;
  let body: JsonObject;
  try {
    body = written(read, upstream);
  } catch (error) {
    if (!(error instanceof NotTranslatable)) throw error;
    assert(refused.has(error.what), `${direction}: ${error.message} for no reason`);
    return;
  }
  assert.deepEqual([...refused], [], `${direction}: is not refused`);
  same(readBack(body, upstream), expectedAt(talk, upstream), direction, body);
}

function readBack(body: JsonObject, upstream: Upstream): Meaning {
  if (upstream === 'gemini') return geminiMeaning(body);
  const read = DIALECTS[upstream].readRequest(body);
  return meaningOf(read, upstream);
}

/** Returns the meaning after the rules of an upstream's dialect: Messages requires a limit, and other dialects have no tools with text input. */
function expectedAt(talk: Conversation, upstream: Upstream): Meaning {
  const maxTokens = upstream === 'messages' ? (talk.maxTokens ?? MAX_OUTPUT) : talk.maxTokens;
  if (upstream !== 'messages') return meaningOf({ ...talk, maxTokens }, upstream);
  const tools = talk.tools.map((tool) => ({ ...tool, input: 'json' as const, schema: schemaOf(tool) }));
  return meaningOf({ ...talk, maxTokens, tools }, upstream);
}

/** Asserts that a mark anywhere in a request arrives, unless the request is refused or a rule drops the mark. */
function losesNothing(random: Random, client: Client, body: JsonObject): void {
  const { marked, path, mark, mayBeDropped } = plant(random, client, body);
  for (const upstream of UPSTREAMS) {
    if (upstream === client) continue;
    const said = translated(client, marked, upstream);
    if (said === undefined || mayBeDropped) continue;
    const isThere = JSON.stringify(said).includes(mark);
    assert(isThere, `${client} to ${upstream} drops ${path}: ${JSON.stringify(marked).slice(0, 2_000)}`);
  }
}

/** Translates a request; undefined if it is refused. What a vendor reads of it is no longer than what came, which bounds the hold. */
function translated(client: Client, body: JsonObject, upstream: Upstream): JsonObject | undefined {
  try {
    const said = written(DIALECTS[client].readRequest(body), upstream);
    // The gateway accepts no body as short as some mutated ones.
    const came = Math.max(100, Buffer.byteLength(JSON.stringify(body)));
    assert(textBytes(said) <= came, 'the text is longer than the body that came');
    return said;
  } catch (error) {
    if (error instanceof NotTranslatable) return undefined;
    throw new Error(`${client} to ${upstream}: ${JSON.stringify(body).slice(0, 2_000)}`, { cause: error });
  }
}

function textBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((sum, each) => sum + textBytes(each), 0);
}

function staysUp(client: Client, body: JsonObject): void {
  for (const upstream of UPSTREAMS) if (upstream !== client) translated(client, body, upstream);
}

/** Nests a request deeply within the inputs of calls, which some dialects write as text that no limit checks. */
function deepened(random: Random, body: JsonObject): JsonObject {
  const levels = random.pick([255, 256, 300, 20_000]);
  const deep = JSON.stringify(`{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`);
  return JSON.parse(
    JSON.stringify(body).replace(/"arguments":"(?:[^"\\]|\\.)*"/, () => `"arguments":${deep}`),
  ) as JsonObject;
}

function changed(random: Random, body: JsonObject): JsonObject {
  let value: unknown = body;
  for (let change = random.below(4); change >= 0; change -= 1) value = mutateJson(random, value);
  return asObject(JSON.parse(JSON.stringify(value))) ?? {};
}
