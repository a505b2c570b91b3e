import { expect } from 'chai';
import { dialectConformance, type RecordedAnswer } from '../../conformance/dialect';
import { type ConformanceSubject, sampleRecordings, upstreamConformance } from '../../conformance/upstream';
import type { AnswerReader } from '../../core/catalog/answer';
import type { TranslatedCall } from '../../core/catalog/upstream';
import chat from '../../plugins/upstreams/chat';
import gemini from '../../plugins/upstreams/gemini';

const SAMPLES = sampleRecordings('chat');
const SUBJECT: ConformanceSubject = { adapter: chat, settings: {}, protocol: 'chat', ...SAMPLES, streams: [] };

/** Returns the names of the checks that an adapter fails. */
function failing(subject: Partial<ConformanceSubject>): string[] {
  return upstreamConformance({ ...SUBJECT, ...subject }).flatMap(({ name, run }) => {
    try {
      run();
      return [];
    } catch {
      return [name];
    }
  });
}

/** Reports its usage as `meta.tokens` of an answer. */
const elsewhere: typeof chat = {
  ...chat,
  readBody: (body) => {
    const { meta } = (body ?? {}) as { meta?: { tokens?: unknown } };
    return chat.readBody({ ...(body as object), usage: meta?.tokens });
  },
};

const answers = SAMPLES.bodies.map((each) => {
  const { usage, ...body } = JSON.parse(each.bytes.toString()) as Record<string, unknown>;
  return { ...each, bytes: Buffer.from(JSON.stringify({ ...body, meta: { tokens: usage } })) };
});

/** An adapter that sends the name of the model in the path. */
const inPath: typeof chat = {
  ...chat,
  request: (call, settings) => {
    const { edits, ...request } = chat.request(call, settings);
    const path = `/models/${encodeURIComponent(call.model)}/chat?version=1&${call.query.slice(1)}`;
    return {
      ...request,
      path,
      edits: [{ member: 'priority', drop: true }, ...edits.filter((each) => each.member !== 'model')],
    };
  },
};

describe('the conformance suite for adapters', () => {
  it('passes an adapter whose usage is at another place of the answer, if the subject names the place', () => {
    expect(failing({ adapter: elsewhere, bodies: answers, usageAt: ['meta', 'tokens'] })).to.deep.equal([]);
    const missed = failing({ adapter: elsewhere, bodies: answers });
    expect(missed).to.include('answer text.json: invalid counts are unknown, never 0');
  });

  it('passes an adapter that sends the model in the path, or nowhere, if the subject says so', () => {
    expect(failing({ adapter: inPath, modelIn: 'path' })).to.deep.equal([]);
    expect(failing({ adapter: inPath, modelIn: 'nowhere' })).to.deep.equal([]);
    expect(failing({ adapter: inPath })).to.deep.equal([
      'request: the model is in the body or the path, priority is removed, every other byte is kept',
    ]);
  });

  it('fails the check of a stream at which an adapter throws, and continues with the others', () => {
    const adapter: typeof chat = {
      ...chat,
      readEvent: (event) => {
        if (event.data?.includes('"custom"')) throw new TypeError('a mistake of its author');
        return chat.readEvent(event);
      },
    };
    expect(failing({ adapter, streams: SAMPLES.streams }))
      .to.include('stream custom-tool-call.sse: the adapter reads it without an error')
      .and.not.include('stream text.sse: the adapter reads it without an error');
  });

  it('checks how an adapter judges an error that came with a success status', () => {
    const bytes = Buffer.from('{"error":{"code":"overloaded"}}');
    const body = { name: 'overloaded.json', bytes, usage: {}, contentBytes: 0 } as const;
    expect(failing({ bodies: [{ ...body, verdict: 'next' }] })).to.deep.equal([]);
    const judged = ['answer overloaded.json: the error is reported with its verdict'];
    expect(failing({ bodies: [{ ...body, verdict: 'relay' }] })).to.deep.equal(judged);
    const silent = { ...chat, readBody: () => ({ usage: { passes: [] }, contentBytes: 0 }) };
    expect(failing({ adapter: silent, bodies: [{ ...body, verdict: 'next' }] })).to.deep.equal(judged);
  });
});

describe('the conformance suite for dialects', () => {
  /** A dialect that does not report an error after content. */
  const silent = {
    ...gemini,
    answer: (call: TranslatedCall) => {
      const reader = gemini.answer(call);
      let hasSaid = false;
      const event: AnswerReader['event'] = (given) => {
        const said = reader.event(given).filter(({ is }) => is !== 'error' || !hasSaid);
        hasSaid ||= said.some(({ is }) => is === 'add');
        return said;
      };
      return { event, body: (body: unknown) => reader.body(body), end: () => reader.end() };
    },
  };
  const bytesOf = (...events: readonly object[]) =>
    Buffer.from(events.map((each) => `data: ${JSON.stringify(each)}\n\n`).join(''));
  const hi = { candidates: [{ index: 0, content: { parts: [{ text: 'Hi' }] } }] };
  const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 };
  const last = { candidates: [{ index: 0, finishReason: 'STOP' }], usageMetadata };
  const streams: readonly RecordedAnswer[] = [
    { name: 'text', bytes: bytesOf(hi, last), text: 'Hi', usage: { input: 3, output: 1 }, ends: 'end' },
    { name: 'error', bytes: bytesOf({ error: { message: 'No.' } }), text: '', usage: {}, ends: 'error' },
  ];
  const told = (adapter: typeof gemini) =>
    dialectConformance({ adapter, settings: { version: 'v1beta' }, streams, bodies: [], failures: [] }).flatMap(
      ({ name, run }) => {
        try {
          run();
          return [];
        } catch {
          return [name];
        }
      },
    );

  it('fails a dialect that does not report an error after content', () => {
    expect(told(gemini)).to.deep.equal([]);
    expect(told(silent)).to.deep.equal(
      ['messages', 'chat', 'responses'].map(
        (protocol) => `stream text: an error after content reaches clients of ${protocol}`,
      ),
    );
  });
});
