/** `npx mocha test/agents/all-documents.ts`: the clients that `npm test` does not install. They are 2 GB. */
import { describeBlocks } from './blocks';

describeBlocks('all', ({ title }) => !['Claude Code', 'Codex'].includes(title));
