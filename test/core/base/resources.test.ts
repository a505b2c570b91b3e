import { expect } from 'chai';
import { openResources } from '../../../core/base/resources';

describe('the resources of a process', () => {
  it('are closed in reverse order of opening', async () => {
    const closed: string[] = [];
    const { keep, close } = openResources();
    keep({ stop: async () => void closed.push('first') });
    expect(keep('second', (name) => closed.push(name))).to.equal('second');
    keep({ stop: async () => void closed.push('third') });
    await close();
    expect(closed).to.deep.equal(['third', 'second', 'first']);
  });

  it('are all closed even if closing one fails, and the first failure is thrown', async () => {
    const closed: string[] = [];
    const { keep, close } = openResources();
    keep('first', (name) => closed.push(name));
    for (const name of ['second', 'third']) {
      keep(name, () => {
        throw new Error(name);
      });
    }
    const failure = await close().catch((error: unknown) => error);
    expect(String(failure)).to.equal('Error: third');
    expect(closed).to.deep.equal(['first']);
  });
});
