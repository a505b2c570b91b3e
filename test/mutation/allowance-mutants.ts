import type { SourceMutant } from './mutate-sources';

const SIMULATION = 'test/simulation/allowances.test.ts';
const RANDOM = 'test/store/ledger/ledger-property.test.ts';
const AT_NODE = 'test/core/ledger/allowance.test.ts';
const AT_NODES = 'test/store/ledger/allowance-ledger.test.ts';

const AT = 'core/ledger/allowances';

export const ALLOWANCE_MUTANTS: readonly SourceMutant[] = [
  {
    name: 'a report is applied twice',
    file: 'core/ledger/redis/report.lua',
    from: 'if sequence <= al.sequence then',
    to: 'if sequence < al.sequence then',
    story: RANDOM,
  },
  {
    name: 'a report that is not answered is sent again as the next one',
    file: `${AT}/reporter.ts`,
    from: 'store.report({ ...report, isPatient })',
    to: 'store.report({ ...report, sequence: report.sequence + (pauseMs > FIRST_PAUSE_MS ? 1 : 0), isPatient })',
    story: SIMULATION,
  },
  {
    name: "the lease is counted from the answer's arrival",
    file: `${AT}/reporter.ts`,
    from: 'allowance.answered(answer, sentAt);',
    to: 'allowance.answered(answer, { ...sentAt, ...rightNow() });',
    story: SIMULATION,
  },
  {
    name: 'the lease goes by monotonic time alone',
    file: `${AT}/allowance.ts`,
    from: 'Date.now() - wallMs < ADMIT_MS',
    to: 'wallMs > 0',
    story: SIMULATION,
  },
  {
    name: 'the lease goes by the time of day alone',
    file: `${AT}/allowance.ts`,
    from: 'performance.now() - monotonicMs < ADMIT_MS',
    to: 'monotonicMs > Number.NEGATIVE_INFINITY',
    story: SIMULATION,
  },
  {
    name: 'a report that is not answered is forgotten, and its sequence used again',
    file: `${AT}/reporter.ts`,
    from: 'const answer = await this.#insist(report);\n',
    to: `const asked = this.#isStopped ? this.#insist(report) : this.#options.store.report(report);
    const answer = await asked.catch(() => ({ outcome: 'not_ready' as const }));
    if (answer.outcome === 'not_ready') allowance.sequence -= 1;\n`,
    story: SIMULATION,
  },
  {
    name: 'a sequence may come again with other content',
    file: 'core/ledger/redis/report.lua',
    from: 'if sequence == al.sequence and al.digest ~= ARGV[3] then',
    to: 'if sequence == al.sequence and not al.digest then',
    story: RANDOM,
  },
  {
    name: 'a recall is not awaited',
    file: 'core/ledger/redis/recalls.ts',
    from: 'if ((await countLive(accountId, scope)) === 0) return;',
    to: 'if ((await countLive(accountId, scope)) >= 0) return;',
    story: SIMULATION,
  },
  {
    name: 'an allowance is missing in held',
    file: 'core/ledger/redis/allowances.lua',
    from: "    add(name, 'held', held)\n",
    to: '',
    story: AT_NODES,
  },
  {
    name: 'who takes over settles reported calls again',
    file: 'core/ledger/spool/take-over.ts',
    from: 'reported.flatMap(({ rids }) => rids)',
    to: 'reported.flatMap(({ rids }) => rids.slice(rids.length))',
    story: SIMULATION,
  },
  {
    name: 'who takes over tells again of what Postgres has',
    file: 'core/ledger/spool/take-over.ts',
    from: '} else if (file.waiting.has(line.rid)) {',
    to: "} else if (file.waiting.has(line.rid) || line.rid !== '') {",
    story: SIMULATION,
  },
  {
    name: 'who takes over passes over what was kept a moment ago',
    file: 'core/ledger/spool/spool.ts',
    from: '    rotate();\n    for (const left',
    to: '    for (const left',
    story: SIMULATION,
  },
  {
    name: 'a report is sent before it is on disk',
    file: `${AT}/reporter.ts`,
    from: 'await spool?.keep(',
    to: 'void spool?.keep(',
    story: SIMULATION,
  },
  {
    name: 'calls are admitted without money',
    file: `${AT}/allowance.ts`,
    from: 'this.freeE8 >= amountE8',
    to: 'this.freeE8 + amountE8 >= amountE8',
    story: SIMULATION,
  },
  {
    name: 'free money is given back and kept',
    file: `${AT}/allowance.ts`,
    from: 'this.freeE8 -= giveE8;',
    to: 'if (giveE8 === 0n) this.freeE8 -= giveE8;',
    story: AT_NODE,
  },
  {
    name: 'an end after a recall is told later',
    file: `${AT}/allowance-ledger.ts`,
    from: 'if (!allowance.admits) return this.#reporter.report(allowance);\n',
    to: 'if (!allowance.admits && allowance.isLost) return this.#reporter.report(allowance);\n',
    story: AT_NODES,
  },
  {
    name: 'calls are admitted from what a cost above its hold is owed',
    file: `${AT}/allowance.ts`,
    from: '    this.freeE8 -= moreE8;\n',
    to: '    this.freeE8 -= moreE8 < this.freeE8 ? moreE8 : this.freeE8;\n',
    story: AT_NODE,
  },
  {
    name: 'a frozen account does not pay for a cost above the hold',
    file: `${AT}/allowance-ledger.ts`,
    from: 'allowance.isSettling = true;',
    to: 'allowance.isSettling = allowance.isLost;',
    story: SIMULATION,
  },
];
