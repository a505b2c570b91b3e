import type { ModelRequest } from '../../core/calls/call';
import type { CostFactors } from '../../core/protocols/cost-factors';

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

/** Returns the cost factors of a request with text only. */
export function textReading(textTokens: number): CostFactors {
  return { ...NOTHING, textTokens };
}

const NOTHING: CostFactors = {
  textTokens: 0,
  normalizing: () => 0,
  images: new Map(),
  imagesByUrl: 0,
  documents: 0,
  keptTokens: 0,
  isUnbounded: false,
  heldMembers: [],
  smallMembers: [],
  unknownMembers: [],
  toolOverheads: 0,
  hasTools: false,
  furtherPasses: 0,
  furtherAnswers: 0,
  predictedTokens: 0,
  cacheWrites: 'hour',
};
