import type { ModelRequest } from '../../core/calls/call';
import { textReading } from '../../core/protocols/cost-factors';

/** Makes a model request without a body. */
export function sampleModelRequest(rest: Partial<ModelRequest> = {}): ModelRequest {
  return {
    protocol: 'messages',
    stream: false,
    query: '',
    headers: {},
    members: new Map(),
    forwardHeaderPrefixes: [],
    modelRequested: 'm',
    maxOutputTokens: undefined,
    choices: 1,
    inputTokensEstimate: 1_000,
    reading: textReading(rest.inputTokensEstimate ?? 1_000),
    body: { chunks: [], byteLength: 0, members: new Map() },
    read: () => undefined,
    ...rest,
  };
}
