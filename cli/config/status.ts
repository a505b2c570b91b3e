import type { Verb } from '../command';
import { showList, showText } from '../output';
import { NODE_COLUMNS, type StatusShape } from './nodes';

const TO_MEND = 'Fix the cause on that node, or roll all nodes back: tollgate config rollback <number>';

const configStatus: Verb = (noun, open) => {
  noun
    .command('status')
    .description('show the active configuration of each node, and why a node rejected one')
    .action(async (_options, command) => {
      const { client, output } = open(command);
      const status = await client.ask<StatusShape>('GET', '/config/status');
      if (output.json) return showText(output, status, []);
      if (status.newest !== null) output.note(`Newest: revision ${status.newest.number} (${status.newest.revision}).`);
      await showList(output, { items: status.nodes }, NODE_COLUMNS);
      if (status.source === 'database' && status.nodes.some(({ failure }) => failure !== null))
        output.note(`A node retries a rejected configuration every 30 s. ${TO_MEND}`);
    });
};

export default configStatus;
