import { expect } from 'chai';
import { type ConformanceSubject, sampleRecordings, upstreamConformance } from '../../conformance/upstream';
import chat from '../../plugins/upstreams/chat';

const SAMPLES = sampleRecordings('chat');
const SUBJECT: ConformanceSubject = { adapter: chat, settings: {}, protocol: 'chat', ...SAMPLES, streams: [] };

/** Names of the checks that an adapter does not hold. */
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

/** Tells its upstream of the model in the path. */
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
  it('takes usage at any place of an answer', () => {
    expect(failing({ adapter: elsewhere, bodies: answers, usageAt: ['meta', 'tokens'] })).to.deep.equal([]);
    const missed = failing({ adapter: elsewhere, bodies: answers });
    expect(missed).to.include('answer text.json: counts that are no counts are unknown, never 0');
  });

  it('takes a model in the path, a query of its own, and no model at all', () => {
    expect(failing({ adapter: inPath, modelIn: 'path' })).to.deep.equal([]);
    expect(failing({ adapter: inPath, modelIn: 'nowhere' })).to.deep.equal([]);
    expect(failing({ adapter: inPath })).to.deep.equal([
      'request: the model is named in body or path, priority stays here, every other byte is kept',
    ]);
  });

  it('fails a check, and goes on, where an adapter throws at a stream', () => {
    const adapter: typeof chat = {
      ...chat,
      readEvent: (event) => {
        if (event.data?.includes('"custom"')) throw new TypeError('a mistake of its author');
        return chat.readEvent(event);
      },
    };
    expect(failing({ adapter, streams: SAMPLES.streams }))
      .to.include('stream custom-tool-call.sse: is read')
      .and.not.include('stream text.sse: is read');
  });

  it('asks what an error with a status of success is told as', () => {
    const bytes = Buffer.from('{"error":{"code":"overloaded"}}');
    const body = { name: 'overloaded.json', bytes, usage: {}, contentBytes: 0 } as const;
    expect(failing({ bodies: [{ ...body, verdict: 'next' }] })).to.deep.equal([]);
    const judged = ['answer overloaded.json: the error is told, and judged'];
    expect(failing({ bodies: [{ ...body, verdict: 'relay' }] })).to.deep.equal(judged);
    const silent = { ...chat, readBody: () => ({ usage: { passes: [] }, contentBytes: 0 }) };
    expect(failing({ adapter: silent, bodies: [{ ...body, verdict: 'next' }] })).to.deep.equal(judged);
  });
});
