import { upstreamConformance } from '../../conformance/upstream';
import type { Protocol, UpstreamAdapter } from '../../core/catalog/upstream';
import chat from '../../plugins/upstreams/chat';
import embeddings from '../../plugins/upstreams/embeddings';
import messages from '../../plugins/upstreams/messages';
import responses from '../../plugins/upstreams/responses';
import { readRecordings } from './recordings';

const OURS: readonly [Protocol, UpstreamAdapter][] = [
  ['messages', messages],
  ['chat', chat],
  ['responses', responses],
  ['embeddings', embeddings],
];

for (const [protocol, adapter] of OURS) {
  describe(`the adapter "${adapter.name}" conforms`, () => {
    for (const { name, run } of upstreamConformance({ adapter, settings: {}, protocol, ...readRecordings(protocol) })) {
      it(name, run);
    }
  });
}
