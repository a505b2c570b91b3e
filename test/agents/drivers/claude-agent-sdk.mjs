import { query } from '@anthropic-ai/claude-agent-sdk';
import { drive } from './driver.mjs';

await drive({
  converse: async ({ prompt }) => {
    let report;
    let said = '';
    let thoughts = '';
    const options = { allowedTools: ['Read', 'WebSearch'] };
    for await (const message of query({ prompt, options })) {
      if (message.type === 'assistant') {
        said = message.message.content.map(({ text = '' }) => text).join('');
        thoughts += message.message.content.map(({ thinking = '' }) => thinking).join('');
      }
      if (message.type === 'result') report = message;
    }
    if (report.subtype !== 'success' || report.is_error) throw new Error(report.result ?? said);
    const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = report.usage;
    const input = input_tokens + cache_read_input_tokens + cache_creation_input_tokens;
    return { text: report.result, thoughts, usage: { input, output: output_tokens } };
  },
});
