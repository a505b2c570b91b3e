import assert from 'node:assert/strict';
import { type Conversation, NotTranslatable, type Part, type Turn } from '../../../core/catalog/conversation';
import { AdapterFault } from '../../../core/catalog/guarded-adapter';
import { ANSWERS, TALKS } from '../../support/long-talks';
import type { Random } from '../../support/random';
import { MODEL, type Rig } from '../rig';
import { requestOf } from '../translation/client-requests';
import { CLIENTS, type Client, DIALECTS, UPSTREAMS } from '../translation/directions';
import { written } from './requests';
import type { Target } from './target';

const SIZES = [1, 100, 5_000, 19_000, 21_000, 60_000];
const LENGTHS = [1, 511, 512, 513, 5_000, 400_000];
const PATHS: Readonly<Record<Client, string>> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
};

/** The most CPU of one reader or writer. Linear ones take a fifth of it for the largest size, on a busy machine. */
const MAX_CPU_MS = 3_000;

/** Sends conversations with many entries or long ids, translates them in each direction, and writes answers of many parts. */
export const long: Target = {
  name: 'long',
  summary: 'calls and answers of many entries or long ids',
  isOfGateway: true,
  run: async (rig, random) => {
    const client = random.pick(CLIENTS);
    const talk = longTalk(random);
    const body = requested(random, client, talk);
    if (body !== undefined) {
      await sent(rig, client, body);
      translated(client, body);
    }
    answered(random, client);
  },
};

/** Joins several shapes, in which other things are many or long. */
function longTalk(random: Random): Conversation {
  const talks = Array.from({ length: 1 + random.below(3) }, () => {
    const { make, most } = random.pick(TALKS);
    return make(random.pick(most > 1_600_000 ? LENGTHS : SIZES));
  });
  const [first] = talks as [Conversation];
  const turns = talks.flatMap((talk) => talk.turns);
  return {
    ...first,
    turns: random.below(2) === 0 ? turns : ofOneSide(turns),
    tools: talks.flatMap(({ tools }) => tools),
  };
}

function ofOneSide(turns: readonly Turn[]): Turn[] {
  return turns.filter(({ role, parts }) => role === 'user' && !parts.some(isResult));
}

function isResult({ kind }: Part): boolean {
  return kind === 'tool_result';
}

/** Returns the request of a program; undefined for what its dialect has no form for. */
function requested(random: Random, client: Client, talk: Conversation): Record<string, unknown> | undefined {
  try {
    return { ...requestOf(random, client, talk), model: MODEL, max_tokens: 10, stream: undefined };
  } catch {
    return undefined;
  }
}

async function sent({ gateway, key, answerNextWith }: Rig, client: Client, body: object): Promise<void> {
  answerNextWith([]);
  const headers = { 'content-type': 'application/json' };
  const { status, text } = await gateway.call(PATHS[client], { key, body: JSON.stringify(body), headers });
  if (status === 500) throw new Error(`${client} answered 500 to a long call: ${text}`);
  if (text.length > 65_536) throw new Error(`${client} answered ${text.length} bytes to a long call`);
}

function translated(client: Client, body: Record<string, unknown>): void {
  let read: Conversation | undefined;
  inTime(`${client} is read`, () => {
    read = DIALECTS[client].readRequest(JSON.parse(JSON.stringify(body)));
  });
  for (const upstream of UPSTREAMS)
    if (upstream !== client)
      inTime(`${client} is written as ${upstream}`, () => read === undefined || written(read, upstream));
}

function answered(random: Random, client: Client): void {
  const { name, make } = random.pick(ANSWERS);
  const events = make(random.pick(SIZES.slice(0, 4)));
  const call = { requestId: 'r', model: MODEL, createdAt: 1, request: {}, seal: String };
  inTime(`${name} of ${client}`, () => {
    const [writer, reader] = [DIALECTS[client].openWriter(call), DIALECTS[client].openReader()];
    for (const event of events) for (const { name: of, data } of writer.write(event)) reader.event({ name: of, data });
    reader.end();
  });
}

/** Asserts that work is refused by name, or done in time. */
function inTime(what: string, work: () => unknown): void {
  const before = process.cpuUsage();
  try {
    work();
  } catch (error) {
    const isDeliberate = error instanceof NotTranslatable || (error instanceof Error && error.name === 'Error');
    if (!isDeliberate || error instanceof AdapterFault) throw new Error(what, { cause: error });
  }
  const { user, system } = process.cpuUsage(before);
  assert((user + system) / 1_000 < MAX_CPU_MS, `${what}: took ${(user + system) / 1_000} ms of CPU`);
}
