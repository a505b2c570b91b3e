import { Command, CommanderError } from 'commander';
import createAccount from './accounts/create';
import freezeAccount from './accounts/freeze';
import listAccounts from './accounts/list';
import showAccount from './accounts/show';
import unfreezeAccount from './accounts/unfreeze';
import updateAccount from './accounts/update';
import listAudit from './audit/list';
import showBalance from './balance/show';
import type { Environment } from './client';
import { sessions, type Verb } from './command';
import showCompletion from './completion/show';
import applyConfig from './config/apply';
import diffConfig from './config/diff';
import configHistory from './config/history';
import reloadConfig from './config/reload';
import showRevision from './config/revision';
import rollbackConfig from './config/rollback';
import configSchema from './config/schema';
import showConfig from './config/show';
import configStatus from './config/status';
import validateConfig from './config/validate';
import addCredit from './credits/add';
import addDebit from './debits/add';
import showDialect from './dialects/show';
import { Ended, Failure, UsageError } from './failure';
import init from './init/init';
import compareInvoice from './invoices/compare';
import fetchInvoice from './invoices/fetch';
import createKey from './keys/create';
import limitKey from './keys/limit';
import listKeys from './keys/list';
import revokeKey from './keys/revoke';
import rotateKey from './keys/rotate';
import updateKey from './keys/update';
import verifyLedger from './ledger/verify';
import type { Output } from './output';
import newPlugin from './plugin/new';
import checkPrices from './prices/check';
import updatePrices from './prices/update';
import listRollouts from './rollout/list';
import { pauseRollout, promoteRollout, resumeRollout, rollbackRollout } from './rollout/orders';
import rolloutStatus from './rollout/status';
import listSandboxes from './sandboxes/list';
import losePlace from './sandboxes/lose';
import listOrphans from './sandboxes/orphans';
import listPlaces from './sandboxes/places';
import start from './start/start';
import createToken from './tokens/create';
import listTokens from './tokens/list';
import revokeToken from './tokens/revoke';
import disableUpstream from './upstreams/disable';
import enableUpstream from './upstreams/enable';
import listUpstreams from './upstreams/list';
import recordUpstream from './upstreams/record';
import testUpstream from './upstreams/test';
import listAttempts from './usage/attempts';
import exportUsage from './usage/export';
import listUsage from './usage/list';
import showUsage from './usage/show';
import createUser from './users/create';
import disableUser from './users/disable';
import enableUser from './users/enable';
import makeLink from './users/link';
import listUsers from './users/list';
import setPassword from './users/password';
import unbindUser from './users/unbind';

/** All nouns with their verbs, in the order of the help. */
const NOUNS: Readonly<Record<string, { readonly summary: string; readonly verbs: readonly Verb[] }>> = {
  accounts: {
    summary: 'accounts, which pay for calls',
    verbs: [createAccount, listAccounts, showAccount, updateAccount, freezeAccount, unfreezeAccount],
  },
  credits: { summary: 'add money to accounts', verbs: [addCredit] },
  debits: { summary: 'debit money from accounts', verbs: [addDebit] },
  keys: { summary: 'API keys of an account', verbs: [createKey, listKeys, revokeKey, limitKey, updateKey, rotateKey] },
  users: {
    summary: 'users of the console',
    verbs: [createUser, listUsers, setPassword, makeLink, unbindUser, disableUser, enableUser],
  },
  sandboxes: {
    summary: 'sandboxes of all accounts, their places, and orphaned instances at suppliers',
    verbs: [listSandboxes, listOrphans, listPlaces, losePlace],
  },
  upstreams: {
    summary: 'upstreams and their health',
    verbs: [listUpstreams, testUpstream, recordUpstream, disableUpstream, enableUpstream],
  },
  rollout: {
    summary: 'changes that are rolled out in stages',
    verbs: [listRollouts, rolloutStatus, pauseRollout, resumeRollout, promoteRollout, rollbackRollout],
  },
  ledger: { summary: 'checks of the ledger', verbs: [verifyLedger] },
  usage: {
    summary: 'usage records: what calls used and cost',
    verbs: [listUsage, showUsage, listAttempts, exportUsage],
  },
  invoices: { summary: 'invoices of vendors, compared with the usage records', verbs: [fetchInvoice, compareInvoice] },
  tokens: { summary: 'tokens of operators for the admin listener', verbs: [createToken, listTokens, revokeToken] },
  audit: { summary: 'the audit log', verbs: [listAudit] },
  prices: {
    summary: 'published prices of vendors, compared with the configuration',
    verbs: [checkPrices, updatePrices],
  },
  config: {
    summary: 'configuration files and applied revisions',
    verbs: [
      ...[
        validateConfig,
        diffConfig,
        configSchema,
        applyConfig,
        rollbackConfig,
        configHistory,
        showConfig,
        configStatus,
      ],
      reloadConfig,
      showRevision,
    ],
  },
  dialects: { summary: 'members of requests, and what is held for them', verbs: [showDialect] },
  plugin: { summary: 'your own packages', verbs: [newPlugin] },
};

const { version: VERSION } = require('tollgate/package.json') as { readonly version: string };

const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/** Runs one command line without the program's name. @returns the exit status */
export async function run(
  args: readonly string[],
  environment: Environment,
  output: Omit<Output, 'json'>,
): Promise<number> {
  try {
    await program(environment, output).parseAsync([...args], { from: 'user' });
    return EXIT.done;
  } catch (error) {
    // Commander has already written its message. Its status is 0 after --help and --version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    if (error instanceof Ended) return error.status;
    if (!(error instanceof Failure || error instanceof UsageError)) throw error;
    output.note(`tollgate: ${error.message}`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}

function program(environment: Environment, output: Omit<Output, 'json'>): Command {
  const open = sessions(environment, output);
  const root = new Command('tollgate')
    .description('Operates a Tollgate gateway through its admin listener (TOLLGATE_URL, TOLLGATE_TOKEN).')
    .version(VERSION, '--version', 'show the version')
    .option('--json', 'print JSON for programs instead of tables')
    .showHelpAfterError('(add --help for usage)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void output.write(text),
      writeErr: (text) => output.note(text.trimEnd()),
    })
    .hook('preAction', (_root, verb) => refuseEmpty(verb));
  for (const [name, { summary, verbs }] of Object.entries(NOUNS)) {
    const noun = root.command(name).description(summary);
    for (const verb of verbs) verb(noun, open);
  }
  init(root, open);
  start(root, open);
  showBalance(root, open);
  showCompletion(root, open);
  return root;
}

/** Rejects an empty argument: most likely a variable of the shell is not set. The gateway could not report that. */
function refuseEmpty({ args, registeredArguments }: Command): void {
  const empty = registeredArguments[args.indexOf('')];
  if (empty !== undefined) throw new UsageError(`<${empty.name()}> is empty. Check that its shell variable is set.`);
}
