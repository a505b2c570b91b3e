import Anthropic from '@anthropic-ai/sdk';
import { drive, INSTRUCTIONS, READ_FILE, readFileTool, readImage } from './driver.mjs';

const client = new Anthropic();

await drive({
  converse: async ({ feature, prompt, model }) => {
    const messages = [{ role: 'user', content: await contentOf(feature, prompt) }];
    const usage = { input: 0, output: 0 };
    let thoughts = '';
    for (;;) {
      const message = await client.messages
        .stream({
          model,
          max_tokens: 64_000,
          system: INSTRUCTIONS,
          cache_control: { type: 'ephemeral' },
          tools: toolsOf(feature),
          messages,
        })
        .finalMessage();
      add(usage, message.usage);
      thoughts += message.content.map(({ thinking = '' }) => thinking).join('');
      if (message.stop_reason !== 'tool_use') return { text: textOf(message), thoughts, usage };
      messages.push(
        { role: 'assistant', content: message.content },
        { role: 'user', content: await resultsOf(message) },
      );
    }
  },
  models: async () => {
    const ids = [];
    for await (const { id } of client.models.list({ limit: 1 })) ids.push(id);
    return ids;
  },
});

async function contentOf(feature, prompt) {
  const text = { type: 'text', text: prompt };
  if (feature !== 'images') return [text];
  const source = { type: 'base64', media_type: 'image/png', data: await readImage() };
  return [{ type: 'image', source }, text];
}

function toolsOf(feature) {
  const read = { name: READ_FILE.name, description: READ_FILE.description, input_schema: READ_FILE.schema };
  if (feature === 'web search') return [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1 }];
  if (feature !== 'deferred tools') return [read];
  return [
    { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' },
    { ...read, defer_loading: true },
  ];
}

function resultsOf({ content }) {
  const calls = content.filter(({ type }) => type === 'tool_use');
  return Promise.all(
    calls.map(async ({ id, input }) => ({ type: 'tool_result', tool_use_id: id, content: await readFileTool(input) })),
  );
}

function textOf({ content }) {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

function add(usage, { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens }) {
  usage.input += input_tokens + (cache_read_input_tokens ?? 0) + (cache_creation_input_tokens ?? 0);
  usage.output += output_tokens;
}
