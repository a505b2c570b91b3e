import { expect } from 'chai';
import { EventReader } from '../../../core/wire/event-reader';
import { SseSplitter } from '../../../core/wire/sse';
import { asksForUsage, HeldFinish } from '../../../policies/sse-relay/held-finish';

const chunk = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const said = (index: number) => chunk({ choices: [{ index, delta: { content: 'é' } }], usage: null });
const finish = (index: number, usage?: object | null) =>
  chunk({ choices: [{ index, delta: {}, finish_reason: 'stop' }], ...(usage !== undefined && { usage }) });
const usageOf = (output: number) => ({ prompt_tokens: 10, completion_tokens: output });
const usage = (output: number) => chunk({ choices: [], usage: usageOf(output) });
const DONE = 'data: [DONE]\n\n';
const COMMENT = ': working\n\n';

interface Row {
  readonly title: string;
  readonly sent: readonly string[];
  readonly given: readonly string[];
  readonly choices?: number;
}

const TABLE: readonly Row[] = [
  {
    title: 'goes into the chunk with the finish reason',
    sent: [said(0), finish(0), usage(5), DONE],
    given: [said(0), finish(0, usageOf(5)), DONE],
  },
  {
    title: 'takes the place of a null',
    sent: [said(0), finish(0, null), usage(5), DONE],
    given: [said(0), finish(0, usageOf(5)), DONE],
  },
  {
    title: 'stays in its chunk when content came between',
    sent: [finish(0), said(0), usage(5), DONE],
    given: [finish(0), said(0), usage(5), DONE],
  },
  {
    title: 'stays in its chunk when the end came between',
    sent: [said(0), finish(0), DONE, usage(5)],
    given: [said(0), finish(0), DONE, usage(5)],
  },
  {
    title: 'changes nothing if the upstream sends none',
    sent: [said(0), finish(0), DONE],
    given: [said(0), finish(0), DONE],
  },
  {
    title: 'stays in the chunk with the finish reason, and is not repeated',
    sent: [said(0), finish(0, usageOf(4)), usage(5), usage(5), DONE],
    given: [said(0), finish(0, usageOf(4)), DONE],
  },
  {
    title: 'is not repeated after its own chunk',
    sent: [finish(0), said(0), usage(5), usage(5), DONE],
    given: [finish(0), said(0), usage(5), DONE],
  },
  {
    title: 'of several choices goes into the newest of their finish chunks',
    sent: [finish(1), said(0), finish(0), finish(2), usage(5), DONE],
    given: [finish(1), said(0), finish(0), finish(2, usageOf(5)), DONE],
    choices: 3,
  },
  {
    title: 'of several choices stays in the finish chunks that have it',
    sent: [finish(0, usageOf(2)), finish(1, usageOf(4)), DONE],
    given: [finish(0, usageOf(2)), finish(1, usageOf(4)), DONE],
    choices: 2,
  },
  {
    title: 'of fewer choices than were asked for goes into the only finish chunk',
    sent: [said(0), finish(0, usageOf(2)), usage(5), DONE],
    given: [said(0), finish(0, usageOf(5)), DONE],
    choices: 2,
  },
  {
    title: 'lets comments overtake the chunk that waits for it',
    sent: [said(0), finish(0), COMMENT, usage(5), DONE],
    given: [said(0), COMMENT, finish(0, usageOf(5)), DONE],
  },
  {
    title: 'before any finish reason stays where it is',
    sent: [usage(1), said(0), finish(0), usage(5), DONE],
    given: [usage(1), said(0), finish(0, usageOf(5)), DONE],
  },
];

/** Writes the pieces as the relay writes them. */
function given(pieces: readonly Buffer[], choices = 1): string {
  const events = new EventReader('chat', choices);
  const held = new HeldFinish(60_000, () => expect.fail('nothing is late'));
  const out: Buffer[] = [];
  for (const noted of pieces.flatMap((piece) => events.read(piece))) {
    if (noted.note.finalUsage !== true || !noted.isWhole) held.pass(noted, out);
    else if (!held.repeats(noted.note)) out.push(...held.withUsage(noted, noted.raw));
  }
  return Buffer.concat([...out, ...held.take(), events.rest() ?? Buffer.alloc(0)]).toString();
}

const dataOf = (text: string) => new SseSplitter().push(Buffer.from(text)).flatMap(({ data }) => data ?? []);

describe('usage that a Chat client did not request', () => {
  for (const { title, sent, given: wanted, choices } of TABLE) {
    it(title, () => expect(given([Buffer.from(sent.join(''))], choices)).to.equal(wanted.join('')));

    it(`${title}, however the bytes are split into reads`, () => {
      const bytes = Buffer.from(sent.join(''));
      const withCr = Buffer.from(sent.join('').replaceAll('\n', '\r\n'));
      for (let at = 1; at < bytes.length; at += 1)
        expect(given([bytes.subarray(0, at), bytes.subarray(at)], choices), `at ${at}`).to.equal(wanted.join(''));
      for (let at = 1; at < withCr.length; at += 1)
        expect(dataOf(given([withCr.subarray(0, at), withCr.subarray(at)], choices)), `at ${at}`).to.deep.equal(
          dataOf(wanted.join('')),
        );
    });
  }

  it('delays the finish chunk only for a limited time; then the gateway sends the chunk unchanged', async () => {
    const [noted] = new EventReader('chat', 1).read(Buffer.from(finish(0)));
    const released = new Promise<Buffer>((resolve) => {
      const held = new HeldFinish(5, resolve);
      if (noted !== undefined) held.pass(noted, []);
      expect(held.isHolding).to.equal(true);
    });
    expect(String(await released)).to.equal(finish(0));
  });

  for (const [options, isAsked] of [
    [undefined, false],
    ['null', false],
    ['{}', false],
    ['{"include_usage":null}', false],
    ['{"include_usage":false}', false],
    ['{"include_usage":"true"}', false],
    ['{"include_usage":true,"x":1}', true],
  ] as const) {
    it(`is ${isAsked ? '' : 'not '}requested by stream_options ${options}`, () =>
      expect(asksForUsage(new Map(options === undefined ? [] : [['stream_options', options]]))).to.equal(isAsked));
  }
});
