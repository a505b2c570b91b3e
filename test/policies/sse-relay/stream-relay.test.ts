import { expect } from 'chai';
import { FINISH, FINISH_WITH_USAGE, relayStream, Sent, said, USAGE } from '../../support/relayed-stream';

describe('A Chat stream whose client did not ask for the usage', () => {
  it('has it in the finish chunk however long the settlement takes', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
    // Only then mocha's own timer runs.
    await new Promise(setImmediate);
    const before = timers();
    const sent = new Sent();
    let settle: () => void = () => undefined;
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const { response, endings, done } = relayStream(sent, said('1234') + FINISH + USAGE, {
      onClientAbort: 'settle',
      settled,
    });
    const written: string[] = [];
    response.write = (chunk: Buffer) => written.push(String(chunk)) > 0;
    await new Promise(setImmediate);
    expect(endings, 'it is being settled').to.have.length(1);
    expect(written, 'nothing is given before').to.deep.equal([]);
    expect(timers(), 'nothing ends the waiting').to.equal(before);
    settle();
    sent.end();
    await done;
    expect(written.join('').replace(',"cost":0.00000000', '')).to.equal(FINISH_WITH_USAGE);
  });
});
