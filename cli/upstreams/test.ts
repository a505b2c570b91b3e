import type { Answers } from '../../shapes/answers';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { type Columns, showOne } from '../output';

type TestShape = Answers['POST /admin/v1/upstreams/{name}/test'];

const COLUMNS: Columns<TestShape> = {
  upstream: ({ upstream }) => upstream,
  model: ({ model }) => model,
  protocol: ({ protocol }) => protocol,
  result: ({ ok }) => (ok ? 'answered' : 'failed'),
  status: ({ status }) => status,
  ms: ({ ms }) => ms,
  problem: ({ problem }) => problem,
};

interface TestOptions {
  readonly model?: string;
  readonly protocol?: string;
  readonly credential?: string;
}

const testUpstream: Verb = (noun, open) => {
  noun
    .command('test <name>')
    .description('make one small real call to an upstream; exit status 1 if it does not answer')
    .option('--model <name>', "the upstream's own name of a model; default: its cheapest")
    .option('--protocol <protocol>', 'messages or chat')
    .option('--credential <name>', 'the name of one of its credentials; default: one that calls would use now')
    .action(async (name: string, asked: TestOptions, command) => {
      const { client, output } = open(command);
      const result = await client.ask<TestShape>('POST', `/upstreams/${encodeURIComponent(name)}/test`, asked);
      await showOne(output, result, COLUMNS);
      if (!result.ok) throw new Failure(`The upstream "${name}" does not answer.`);
    });
};

export default testUpstream;
