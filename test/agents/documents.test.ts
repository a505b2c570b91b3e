import { describeBlocks } from './blocks';

describeBlocks('tests', ({ title }) => ['Claude Code', 'Codex'].includes(title));
