import { sampleRecordings, upstreamConformance } from '../../conformance/upstream';
import type { Protocol, UpstreamAdapter } from '../../core/catalog/upstream';
import bedrock from '../../plugins/upstreams/bedrock';
import chat from '../../plugins/upstreams/chat';
import embeddings from '../../plugins/upstreams/embeddings';
import messages from '../../plugins/upstreams/messages';
import responses from '../../plugins/upstreams/responses';
import vertex from '../../plugins/upstreams/vertex';
import { asEventStream } from '../support/event-stream';

const OURS: readonly [Protocol, UpstreamAdapter][] = [
  ['messages', messages],
  ['chat', chat],
  ['responses', responses],
  ['embeddings', embeddings],
];

/** Anthropic's models at other clouds: the same answers, and Amazon's in its own framing. */
const ELSEWHERE: readonly (readonly [UpstreamAdapter, object, (bytes: Buffer) => Buffer | undefined])[] = [
  [bedrock, { region: 'us-east-1' }, asEventStream],
  [vertex, { project: 'my-project', region: 'us-east5' }, () => undefined],
];

for (const [adapter, settings, frame] of ELSEWHERE) {
  describe(`the adapter "${adapter.name}" conforms`, () => {
    const { streams, ...rest } = sampleRecordings('messages');
    const framed = streams.map((stream) => {
      const bytes = frame(stream.bytes);
      return bytes === undefined ? stream : { ...stream, framed: bytes };
    });
    const subject = { adapter, settings, protocol: 'messages', modelIn: 'path', streams: framed, ...rest } as const;
    for (const { name, run } of upstreamConformance(subject)) it(name, run);
  });
}

for (const [protocol, adapter] of OURS) {
  describe(`the adapter "${adapter.name}" conforms`, () => {
    for (const { name, run } of upstreamConformance({
      adapter,
      settings: {},
      protocol,
      ...sampleRecordings(protocol),
    })) {
      it(name, run);
    }
  });
}
