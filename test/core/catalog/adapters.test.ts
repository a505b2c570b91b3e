import { expect } from 'chai';
import { findAdapter, registerAdapter } from '../../../core/catalog/adapters';
import type { UpstreamAdapter1 } from '../../../core/catalog/upstream';
import { sampleAdapter } from '../../support/catalog-samples';

const COUNTS = {
  inputTokens: 3,
  outputTokens: 5,
  cacheReadTokens: undefined,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 7,
};

/** As a package of the contract before reports. */
const BEFORE: UpstreamAdapter1 = {
  ...sampleAdapter('before', ['chat']),
  contract: 'upstream/1',
  readEvent: () => ({ content: true, contentBytes: 2, usage: COUNTS, finalUsage: true }),
  readBody: () => ({ usage: COUNTS, contentBytes: 9, error: { body: 'told' } }),
};

describe('an adapter of the contract upstream/1', () => {
  let forget: () => void;
  before(() => {
    forget = registerAdapter(BEFORE);
  });
  after(() => forget());

  const PASSES = [
    {
      counts: new Map([
        ['input', 3],
        ['output', 5],
        ['cacheWrite', 0],
        ['cacheWrite1h', 7],
      ]),
    },
  ];

  it('reports its five counts as one pass; what it does not know stays unknown', () => {
    const note = findAdapter('before')?.readEvent({ name: undefined, data: 'x' });
    expect(note).to.deep.equal({ content: true, contentBytes: 2, finalUsage: true, usage: { passes: PASSES } });
  });

  it('keeps everything else that it says of a whole answer', () => {
    const read = findAdapter('before')?.readBody({});
    expect(read).to.deep.equal({ contentBytes: 9, error: { body: 'told' }, usage: { passes: PASSES } });
  });
});
