import { expect } from 'chai';
import { shardOf } from '../../../core/ledger/shard';

describe('the shard of an account', () => {
  it('stays the same in every version, because the names of keys in Redis contain it', () => {
    expect(shardOf('00000000-0000-0000-0000-000000000000')).to.equal(137);
    expect(shardOf('019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d')).to.equal(224);
    expect(shardOf('0199b7c4-9a70-7d11-a5ce-5f3a1de0b8f2')).to.equal(33);
    expect(shardOf('ffffffff-ffff-ffff-ffff-ffffffffffff')).to.equal(143);
  });
});
