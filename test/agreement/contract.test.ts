import { expect } from 'chai';
import { ERRORS } from '../../core/base/errors';
import { MAX_ACTIVE_SANDBOXES } from '../../plugins/sandbox/admission/admission';
import { SANDBOX_LIMITS } from '../../plugins/sandbox/lifecycle/settings';
import { LIFECYCLE_PHASES, OBSERVED_STATES, OPERATION_STATUSES } from '../../plugins/sandbox/lifecycle/states';
import { EVENT, OPERATION, PERIOD, SANDBOX, SEGMENT } from '../../plugins/sandbox/store/shapes';
import { RECORD_COLUMNS } from '../../plugins/usage/record';
import keyAuth from '../../policies/key-auth';
import { textOf } from '../support/sources';

const contract = textOf('docs/contract.md');
const rows = contract
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|').map((cell) => cell.trim()));

/** Returns the words in code style after the first cell of the row that begins with `name`. */
function wordsOf(name: string): readonly string[] {
  const row = rows.find(([, first]) => first === name) ?? [];
  return [
    ...row
      .slice(2)
      .join(' ')
      .matchAll(/`([^`]+)`/g),
  ].flatMap(([, words = '']) => words.split(', '));
}

function membersOf(schema: object): readonly string[] {
  return Object.keys((schema as { readonly properties: object }).properties);
}

describe('docs/contract.md', () => {
  it('lists the fields of a usage record in the order of the CSV export', () => {
    const [fields = ''] = /`requestId,[^`]+`/.exec(contract) ?? [];
    expect(fields.replaceAll('`', '').split(/,\s+/)).to.deep.equal(RECORD_COLUMNS);
  });

  it('lists the members of every part of a sandbox', () => {
    const parts = { record: SANDBOX, operation: OPERATION, event: EVENT, segment: SEGMENT, period: PERIOD };
    for (const [name, schema] of Object.entries(parts)) expect(wordsOf(name), name).to.have.members(membersOf(schema));
    const { policy } = (SANDBOX as unknown as { properties: { policy: object } }).properties;
    expect(wordsOf('policy')).to.have.members(membersOf(policy));
  });

  it('lists every state of a sandbox and of an operation', () => {
    expect(wordsOf('`observedState`')).to.have.members(OBSERVED_STATES);
    expect(wordsOf('`lifecyclePhase`')).to.have.members(LIFECYCLE_PHASES);
    for (const status of OPERATION_STATUSES) expect(contract).to.contain(`\`${status}\``);
  });

  it('gives each error the status that it has in the error catalog', () => {
    const named = [...contract.matchAll(/\b(\d{3}) ([A-Z]+(?:_[A-Z]+)+|DRAINING|OVERLOADED|CONFLICT)/g)];
    expect(named.length).to.be.above(40);
    const wrong = named
      .filter(([, status, code]) => `${status} ${code}` !== '400 NOT_SUPPORTED')
      .filter(([, status, code]) => status !== String(ERRORS[code as keyof typeof ERRORS]?.status));
    expect(wrong.map(([words]) => words)).to.deep.equal([]);
  });

  it('states the same limits of calls, sandboxes and commands as the code', () => {
    const limits = contract.slice(contract.indexOf('\n## 10.'), contract.indexOf('\n## 11.'));
    const { concurrentCallsPerKey: perKey, concurrentCallsPerAccount: perAccount } = (
      keyAuth.schema as unknown as { properties: Record<string, { default: number }> }
    ).properties;
    const inDigits = (limit: number | undefined) => limit?.toLocaleString('en-GB');
    expect(limits).to.contain(`${inDigits(perKey?.default)} of a key, ${inDigits(perAccount?.default)} of an account`);
    const { commandsPerSandbox, commandsPerAccount, followersPerSandbox } = SANDBOX_LIMITS;
    expect(limits).to.contain(
      `${commandsPerSandbox.default} of a sandbox, ${commandsPerAccount.default} of an account`,
    );
    expect(limits).to.contain(`${followersPerSandbox.default} at one process`);
    expect(limits).to.match(new RegExp(`active sandboxes +\\| ${MAX_ACTIVE_SANDBOXES} of an account`));
  });
});
