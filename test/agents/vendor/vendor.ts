import type { Exchange, Script } from '../../support/scripts/script';
import { respond, startUpstream, stream } from '../../support/upstream';
import { readChat, refuseOpenAI, writeChat } from './chat';
import { chargeOf, countsOf, type Prompt } from './counting';
import { type Json, object, objectsOf } from './json';
import { readMessages, refuseMessages, writeMessages } from './messages';
import { readResponses, writeResponses } from './responses';
import { type Thought, thoughtsIn } from './thoughts';
import { type Counts, type RefusalBody, type RefusalKind, type Step, say, type Turn, turn, type Written } from './turn';

/** A vendor on loopback that answers as a feature scripts it, speaks all dialects, and knows its charge for each call. */
export interface Vendor {
  readonly url: string;
  /** The calls since {@link begin}, in order of arrival. */
  readonly calls: readonly VendorCall[];
  /** Forgets all calls and prefixes. Calls that `isScripted` accepts get these steps in turn, and then the last one again. */
  begin(steps: readonly Step[], isScripted: (call: VendorCall) => boolean): void;
  stop(): Promise<void>;
}

export interface VendorCall {
  readonly path: string;
  readonly body: Json;
  /** The names of the client's own tools in this call. */
  readonly tools: readonly string[];
  readonly headers: Readonly<Record<string, unknown>>;
  /** The usage; undefined until the whole answer was sent. */
  counts?: Counts;
  /** The model's reasoning in the answer. */
  thoughts: readonly Thought[];
  /** The charge in units of 1e-8 USD. Answers that are refused or cut off are free. */
  charge: bigint;
  /** Whether the answer was sent or its connection has closed. */
  ended: boolean;
  /** Whether the gateway closed the connection before it had the whole answer. */
  readonly leftEarly: boolean;
}

interface Dialect {
  read(body: Json): Prompt;
  write(turn: Turn, counts: Counts, model: string, id: string, request: Json): Written;
  refuse(kind: RefusalKind): RefusalBody;
}

const DIALECTS: Readonly<Record<string, Dialect>> = {
  '/v1/messages': { read: readMessages, write: writeMessages, refuse: refuseMessages },
  '/v1/chat/completions': { read: readChat, write: writeChat, refuse: refuseOpenAI },
  '/v1/responses': { read: readResponses, write: writeResponses, refuse: refuseOpenAI },
};

/** The answer to requests beside the conversation, such as for a title. */
const ASIDE: Turn = turn(say('A short title'));

export async function startVendor(): Promise<Vendor> {
  const upstream = await startUpstream();
  const seen = new Set<string>();
  let calls: VendorCall[] = [];
  let steps: readonly Step[] = [];
  let place = 0;
  /** Counts ids across forgotten calls, because an id belongs to the first customer that received it. */
  let written = 0;
  let isScripted: (call: VendorCall) => boolean = () => true;

  const nextStep = (call: VendorCall): Step => {
    if (!isScripted(call)) return ASIDE;
    place += 1;
    return steps[place - 1] ?? steps.at(-1) ?? ASIDE;
  };
  const answer = async (exchange: Exchange): Promise<void> => {
    const path = exchange.call.path.split('?')[0] ?? '';
    const dialect = DIALECTS[path];
    if (dialect === undefined) return respond({ status: 404, body: { error: { message: path } } }).answer(exchange);
    const call = callOf(exchange, path);
    calls.push(call);
    await answerCall(call, dialect, exchange);
    call.ended = true;
  };
  const answerCall = async (call: VendorCall, dialect: Dialect, exchange: Exchange): Promise<void> => {
    const step = nextStep(call);
    if ('refuse' in step) return respond(dialect.refuse(step.refuse)).answer(exchange);
    const counts = countsOf(dialect.read(call.body), step, seen);
    written += 1;
    const said = dialect.write(step, counts, String(call.body['model']), `${written}`, call.body);
    await deliver(call, step, said).answer(exchange);
    if (step.cutAt !== undefined || call.leftEarly) return;
    call.counts = counts;
    call.thoughts = thoughtsIn(said.body);
    call.charge = chargeOf(counts);
  };
  upstream.always({ answer });
  return {
    url: upstream.url,
    get calls() {
      return calls;
    },
    begin: (next, scripted) => {
      upstream.reset();
      upstream.always({ answer });
      seen.clear();
      calls = [];
      steps = next;
      place = 0;
      isScripted = scripted;
    },
    stop: () => upstream.stop(),
  };
}

function deliver(call: VendorCall, { cutAt }: Turn, { body, events }: Written): Script {
  if (call.body['stream'] !== true) return respond({ body });
  if (cutAt === undefined) return stream(events, 0);
  return stream(events, 0, { cut: 'reset', cutAfter: Math.floor(events.length * cutAt) });
}

function callOf({ call }: Exchange, path: string): VendorCall {
  const body = object(call.json);
  return {
    path,
    body,
    headers: call.headers,
    tools: objectsOf(body['tools']).flatMap(toolNames),
    thoughts: [],
    charge: 0n,
    ended: false,
    get leftEarly() {
      return call.closedEarly;
    },
  };
}

/** Lists the names of a tool. Messages has them directly, Chat inside `function`, and Responses may group them into namespaces. */
function toolNames(tool: Json): readonly string[] {
  if (tool['type'] === 'namespace') return objectsOf(tool['tools']).flatMap(toolNames);
  const { name = object(tool['function'])['name'] } = tool;
  return typeof name === 'string' ? [name] : [];
}
