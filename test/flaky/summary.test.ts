import { expect } from 'chai';
import { summarize, table } from './summary';

const failure = (title: string, message = 'expected 1 to equal 2') => ({ title, message });

describe('the summary of repeated runs', () => {
  it('counts green rounds and each failed test, the most frequent first', () => {
    const summary = summarize([
      { passed: 10, failures: [], seconds: 4 },
      { passed: 8, failures: [failure('a'), failure('b')], seconds: 6 },
      { passed: 9, failures: [failure('b', 'timeout')], seconds: 5 },
    ]);
    expect(summary).to.deep.equal({
      rounds: 3,
      green: 1,
      passed: 27,
      medianSeconds: 5,
      failed: [
        { title: 'b', times: 2, messages: ['expected 1 to equal 2', 'timeout'] },
        { title: 'a', times: 1, messages: ['expected 1 to equal 2'] },
      ],
    });
  });

  it('prints one line when nothing failed', () => {
    expect(table(summarize([{ passed: 3, failures: [], seconds: 2 }]))).to.equal(
      '1 of 1 rounds green, 3 tests passed, median 2 s a round\n',
    );
  });
});
