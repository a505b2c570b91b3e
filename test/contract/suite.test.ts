import { expect } from 'chai';
import { type ConformanceSubject, sampleRecordings, upstreamConformance } from '../../conformance/upstream';
import chat from '../../plugins/upstreams/chat';

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
  it("passes an adapter that sends the model's name in the path or not at all, if the test declares that", () => {
    expect(failing({ adapter: inPath, modelIn: 'path' })).to.deep.equal([]);
    expect(failing({ adapter: inPath, modelIn: 'nowhere' })).to.deep.equal([]);
    expect(failing({ adapter: inPath })).to.deep.equal([
      'request: the model is in the body or the path, priority is removed, every other byte is kept',
    ]);
  });

  it("checks the adapter's verdict on an error that came with a success status", () => {
    const bytes = Buffer.from('{"error":{"code":"overloaded"}}');
    const body = { name: 'overloaded.json', bytes, usage: {}, contentBytes: 0 } as const;
    expect(failing({ bodies: [{ ...body, verdict: 'next' }] })).to.deep.equal([]);
    const judged = ['answer overloaded.json: the error is reported with its verdict'];
    expect(failing({ bodies: [{ ...body, verdict: 'relay' }] })).to.deep.equal(judged);
    const whole = { ...body, bytes: Buffer.from('{"choices":[]}') };
    expect(failing({ bodies: [{ ...whole, verdict: 'next' }] })).to.include(judged[0]);
  });
});
