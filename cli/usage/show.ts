import type { Verb } from '../command';
import { showOne } from '../output';
import { RECORD_COLUMNS, type RecordShape } from './columns';

const showUsage: Verb = (noun, open) => {
  noun
    .command('show <request>')
    .description('show the usage record of one call by its X-SVC-Request-Id')
    .action(async (request: string, _options, command) => {
      const { client, output } = open(command);
      const record = await client.ask<RecordShape>('GET', `/usage/${encodeURIComponent(request)}`);
      await showOne(output, record, {
        ...RECORD_COLUMNS,
        error: ({ errorCode }) => errorCode,
        attempts: ({ attempts }) => attempts,
        session: ({ sessionId }) => sessionId,
        agent: ({ agentId }) => agentId,
      });
    });
};

export default showUsage;
