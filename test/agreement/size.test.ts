import assert from 'node:assert/strict';
import { ceilings, measure } from '../support/size';

describe('the size of the project', () => {
  let measured: ReadonlyMap<string, number>;

  before(async () => {
    measured = await measure();
  });

  it('has a limit in CONTRIBUTING.md for each measured figure', () => {
    assert.deepEqual([...ceilings().keys()], [...measured.keys()]);
  });

  for (const [name, ceiling] of ceilings())
    it(`is at most ${ceiling.toLocaleString('en')} ${name}`, () => assert.ok((measured.get(name) ?? 0) <= ceiling));
});
