import type { ProgramEnd } from '../support/agents';
import { bodyText, type Client, type Outcome } from './clients/client';
import { imagesIn } from './vendor/counting';
import { thoughtsIn } from './vendor/thoughts';
import { refuse, type Step, say, think, turn } from './vendor/turn';
import type { VendorCall } from './vendor/vendor';

export type FeatureName =
  | 'hello'
  | 'tools'
  | 'parallel tools'
  | 'reasoning'
  | 'long session'
  | 'deferred tools'
  | 'web search'
  | 'images'
  | 'long output'
  | 'cut stream'
  | '401'
  | '402'
  | '400'
  | '429'
  | '500'
  | 'prompt too long'
  | 'model list'
  | 'usage';

/** The observations of one client with one feature. */
export interface Seen {
  readonly client: Client;
  readonly outcome: Outcome;
  readonly end: ProgramEnd;
  /** Calls of the conversation, as the vendor received them. */
  readonly calls: readonly VendorCall[];
}

export interface Feature {
  readonly name: FeatureName;
  /** The condition for "works", for the document. */
  readonly means: string;
  readonly prompt: string;
  /** The customer whose key the client has. Default: a customer with money. */
  readonly customer?: 'unknown' | 'without money';
  steps(client: Client): readonly Step[];
  /** Returns the failures; none when the feature works. */
  judge(seen: Seen): readonly (string | undefined)[];
}

const PAGES = Array.from({ length: 20 }, (_, index) => ({
  name: `page-${index}.txt`,
  text: Array.from({ length: 120 }, (_, word) => `page${index}word${word}`).join(' '),
}));
/** Files in the client's working folder. */
export const NOTES = {
  'note.txt': 'tolls are due',
  'other.txt': 'on the first of the month',
  ...Object.fromEntries(PAGES.map(({ name, text }) => [name, text])),
};

const LONG_TEXT = Array.from({ length: 6_000 }, (_, index) => `word${index}`).join(' ');
const ANSWER = 'The answer is 42.';

export const FEATURES: readonly Feature[] = [
  {
    name: 'hello',
    means: 'An answer comes and is shown.',
    prompt: 'say hello',
    steps: () => [turn(say('Hello there.'))],
    judge: (seen) => answered(seen, 'Hello there.', 1),
  },
  {
    name: 'tools',
    means: 'The model calls a tool of the client and gets its result.',
    prompt: 'what does note.txt say?',
    steps: ({ tools }) => [turn(say('I will look.'), tools.read('note.txt')), turn(say('It says: tolls are due.'))],
    judge: (seen) => [...answered(seen, 'It says: tolls are due.', 2), holds(seen.calls[1], NOTES['note.txt'])],
  },
  {
    name: 'parallel tools',
    means: 'One answer has two tool calls; both results come back in one call.',
    prompt: 'what do note.txt and other.txt say?',
    steps: ({ tools }) => [turn(tools.read('note.txt'), tools.read('other.txt')), turn(say('Both are read.'))],
    judge: (seen) => [
      ...answered(seen, 'Both are read.', 2),
      holds(seen.calls[1], NOTES['note.txt']),
      holds(seen.calls[1], NOTES['other.txt']),
    ],
  },
  {
    name: 'reasoning',
    means: 'The client shows what the model thought, and sends it back in the next calls as it came, with signatures.',
    prompt: 'what do note.txt and other.txt say?',
    steps: ({ tools }) => [
      turn(think('First I look into the note.'), say('I will look.'), tools.read('note.txt')),
      turn(think('Now the other one.'), tools.read('other.txt')),
      turn(think('That is all I need.'), say('Both are read.')),
    ],
    judge: (seen) => [...answered(seen, 'Both are read.', 3), ...showsThoughts(seen), remembers(seen)],
  },
  {
    name: 'long session',
    means: 'The model reads 20 files, one a call. Nothing is lost, and each call reads more from the cache.',
    prompt: 'what do the pages say?',
    steps: ({ tools }) => [
      ...PAGES.map(({ name }) => turn(think(`I have not read ${name}.`), tools.read(name))),
      turn(say('All pages are read.')),
    ],
    judge: (seen) => [
      ...answered(seen, 'All pages are read.', PAGES.length + 1),
      ...PAGES.map(({ text }) => holds(seen.calls.at(-1), text)),
      seen.client.lacks.reasoning === undefined ? remembers(seen) : undefined,
      readsMore(seen),
      ...(seen.client.lacks.usage === undefined ? countsAgree(seen) : []),
    ],
  },
  {
    name: 'deferred tools',
    means: 'The model searches for a tool that was not sent in full, and the tool is loaded.',
    prompt: 'which tools are there?',
    steps: ({ tools }) => [turn(...(tools.load ?? [])), turn(say('The tool is there.'))],
    judge: (seen) => [...answered(seen, 'The tool is there.', 2), ...(seen.client.tools.loaded?.(seen.calls) ?? [])],
  },
  {
    name: 'web search',
    means: 'A search runs at the vendor and costs its price.',
    prompt: 'search the web: when are tolls due?',
    steps: ({ tools }) => {
      const found = turn(
        { kind: 'webSearch', query: 'when are tolls due', url: 'https://example.com/tolls' },
        say('They are due on the first.'),
      );
      return tools.search === undefined
        ? [found]
        : [turn(tools.search), found, turn(say('They are due on the first.'))];
    },
    judge: (seen) => [
      ...answered(seen, 'They are due on the first.', seen.client.tools.search === undefined ? 1 : 3),
      seen.calls.some(({ counts }) => counts?.webSearches === 1) ? undefined : 'no search reached the vendor',
    ],
  },
  {
    name: 'images',
    means: 'An image reaches the model.',
    prompt: 'what does image.png show?',
    steps: ({ tools }) =>
      tools.seesByItself === true
        ? [turn(say('It is a red square.'))]
        : [turn(tools.read('image.png')), turn(say('It is a red square.'))],
    judge: (seen) => [
      ...answered(seen, 'It is a red square.', seen.client.tools.seesByItself === true ? 1 : 2),
      imagesIn(seen.calls.at(-1)?.body) > 0 ? undefined : 'no image reached the vendor',
    ],
  },
  {
    name: 'long output',
    means: 'An answer of 50 KB in 3,000 events arrives whole.',
    prompt: 'tell me a long story',
    steps: () => [turn(say(LONG_TEXT))],
    judge: (seen) => answered(seen, LONG_TEXT, 1),
  },
  {
    name: 'cut stream',
    means: 'The vendor breaks off in the middle of an answer: the client continues or reports it. The answer is free.',
    prompt: 'what is the answer?',
    steps: () => [
      { ...turn(say('The answer is 41, or perhaps it is another number.')), cutAt: 0.6 },
      turn(say(ANSWER)),
    ],
    judge: (seen) => (seen.client.retries ? answered(seen, ANSWER, 2) : failed(seen, /./, 1)),
  },
  {
    name: '401',
    means: 'The key is not valid: the client ends and says so.',
    prompt: 'say hello',
    customer: 'unknown',
    steps: () => [],
    judge: (seen) => failed(seen, /api key/i, 0),
  },
  {
    name: '402',
    means: 'The balance is used up: the client ends and says so.',
    prompt: 'say hello',
    customer: 'without money',
    steps: () => [],
    judge: (seen) => failed(seen, /balance/i, 0),
  },
  {
    name: '400',
    means: "The vendor refuses a request: the client ends and shows the vendor's words.",
    prompt: 'say hello',
    steps: () => [refuse('invalid')],
    judge: (seen) => failed(seen, /vendor does not take/, undefined),
  },
  {
    name: '429',
    means: 'The vendor is busy for a second: the client waits and gets its answer.',
    prompt: 'what is the answer?',
    steps: () => [refuse('rateLimited'), turn(say(ANSWER))],
    judge: (seen) => answered(seen, ANSWER, undefined),
  },
  {
    name: '500',
    means: 'The vendor fails once: the client asks again and gets its answer.',
    prompt: 'what is the answer?',
    steps: () => [refuse('broken'), turn(say(ANSWER))],
    judge: (seen) => answered(seen, ANSWER, undefined),
  },
  {
    name: 'prompt too long',
    means:
      'The vendor says that the prompt is too long: the client shortens it and gets its answer, or ends and says so.',
    prompt: 'say hello',
    steps: () => [refuse('tooLong'), turn(say(ANSWER))],
    judge: (seen) =>
      seen.calls.length > 1
        ? answered(seen, ANSWER, 2)
        : failed(seen, /too long|context (window|length)|ran out of room/i, 1),
  },
  {
    name: 'model list',
    means: 'The client reads the models of the gateway.',
    prompt: 'say hello',
    steps: () => [turn(say('Hello there.'))],
    judge: ({ client, outcome: { models = [] } }) => [
      models.includes(client.model) ? undefined : `it lists ${models.length === 0 ? 'no models' : models.join(', ')}`,
    ],
  },
  {
    name: 'usage',
    means: 'The client counts the tokens that the vendor reports, also of a call that reads the cache.',
    prompt: 'what does note.txt say?',
    steps: ({ tools }) => [
      turn(think('I have to look into the note.'), tools.read('note.txt')),
      turn(say('It says: tolls are due.')),
    ],
    judge: (seen) => [...answered(seen, 'It says: tolls are due.', 2), ...countsAgree(seen)],
  },
];

function answered({ outcome, calls }: Seen, text: string, count: number | undefined): readonly (string | undefined)[] {
  return [
    outcome.succeeded ? undefined : 'the client reports a failure',
    outcome.text.includes(text) ? undefined : `it says: ${outcome.text.slice(0, 200)}`,
    calledTimes(calls, count),
  ];
}

function failed(
  { outcome, end, calls }: Seen,
  words: RegExp,
  count: number | undefined,
): readonly (string | undefined)[] {
  return [
    outcome.succeeded ? 'the client reports success' : undefined,
    end.code === null ? 'the client did not end' : undefined,
    words.test(end.output) ? undefined : `nothing in its output is like ${String(words)}`,
    calledTimes(calls, count),
  ];
}

function calledTimes(calls: readonly VendorCall[], count: number | undefined): string | undefined {
  return count === undefined || calls.length === count
    ? undefined
    : `${calls.length} calls reached the vendor, not ${count}`;
}

function holds(call: VendorCall | undefined, text: string): string | undefined {
  return bodyText(call).includes(text) ? undefined : `"${text.slice(0, 40)}" did not reach the vendor`;
}

function showsThoughts({ outcome: { thoughts = '' }, calls }: Seen): readonly (string | undefined)[] {
  const given = calls.flatMap((call) => call.thoughts);
  return given.map(({ text }) => (thoughts.includes(text) ? undefined : `it does not show the thought "${text}"`));
}

function remembers({ calls }: Seen): string | undefined {
  const given = JSON.stringify(calls.slice(0, -1).flatMap(({ thoughts }) => thoughts));
  const back = JSON.stringify(thoughtsIn(calls.at(-1)?.body ?? {}));
  return back === given ? undefined : `the thoughts came back as ${back.slice(0, 200)}, not as ${given.slice(0, 200)}`;
}

function readsMore({ calls }: Seen): string | undefined {
  const read = calls.slice(1).map(({ counts }) => counts?.cacheRead ?? 0);
  return read.every((count, at) => count > (read[at - 1] ?? 0)) ? undefined : `the cache was read ${read.join(', ')}`;
}

function countsAgree({ outcome: { usage }, calls }: Seen): readonly (string | undefined)[] {
  const reported = calls.flatMap(({ counts }) => (counts === undefined ? [] : [counts]));
  const input = reported.reduce(
    (sum, each) => sum + each.input + each.cacheRead + each.cacheWrite + each.cacheWrite1h,
    0,
  );
  const output = reported.reduce((sum, each) => sum + each.output, 0);
  if (usage === undefined) return ['the client tells no usage'];
  return [
    reported.some(({ cacheRead }) => cacheRead > 0) ? undefined : 'the second call did not read the cache',
    usage.input === input ? undefined : `it counts ${usage.input} input tokens, and the vendor ${input}`,
    usage.output === output ? undefined : `it counts ${usage.output} output tokens, and the vendor ${output}`,
  ];
}
