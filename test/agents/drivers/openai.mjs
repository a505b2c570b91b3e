import OpenAI from 'openai';
import { drive, INSTRUCTIONS, READ_FILE, readFileTool, readImage } from './driver.mjs';

const client = new OpenAI();

await drive({
  converse: (task) => (task.protocol === 'Chat' ? converseInChat(task) : converseInResponses(task)),
  models: async () => {
    const ids = [];
    for await (const { id } of client.models.list()) ids.push(id);
    return ids;
  },
});

async function converseInChat({ feature, prompt, model }) {
  const image = feature === 'images' ? [{ type: 'image_url', image_url: { url: await imageUrl() } }] : [];
  const messages = [
    { role: 'system', content: INSTRUCTIONS },
    { role: 'user', content: [...image, { type: 'text', text: prompt }] },
  ];
  const usage = { input: 0, output: 0 };
  const { name, description, schema } = READ_FILE;
  for (;;) {
    const completion = await client.chat.completions
      .stream({
        model,
        messages,
        stream_options: { include_usage: true },
        ...(feature === 'web search'
          ? { web_search_options: {} }
          : { tools: [{ type: 'function', function: { name, description, parameters: schema } }] }),
      })
      .finalChatCompletion();
    add(usage, completion.usage.prompt_tokens, completion.usage.completion_tokens);
    const [{ message }] = completion.choices;
    if (!message.tool_calls?.length) return { text: message.content, usage };
    messages.push(message);
    for (const { id, function: called } of message.tool_calls) {
      messages.push({ role: 'tool', tool_call_id: id, content: await readFileTool(JSON.parse(called.arguments)) });
    }
  }
}

async function converseInResponses({ feature, prompt, model }) {
  const image = feature === 'images' ? [{ type: 'input_image', image_url: await imageUrl(), detail: 'auto' }] : [];
  const input = [{ role: 'user', content: [...image, { type: 'input_text', text: prompt }] }];
  const usage = { input: 0, output: 0 };
  let thoughts = '';
  for (;;) {
    const response = await client.responses
      .stream({ model, instructions: INSTRUCTIONS, input, tools: toolsOf(feature), store: false })
      .finalResponse();
    add(usage, response.usage.input_tokens, response.usage.output_tokens);
    const calls = response.output.filter(({ type }) => type === 'function_call');
    thoughts += response.output.flatMap(({ summary = [] }) => summary.map(({ text }) => text)).join('');
    if (calls.length === 0) return { text: response.output_text, thoughts, usage };
    input.push(...response.output);
    for (const { call_id, arguments: written } of calls) {
      input.push({ type: 'function_call_output', call_id, output: await readFileTool(JSON.parse(written)) });
    }
  }
}

function toolsOf(feature) {
  const { name, description, schema } = READ_FILE;
  const read = { type: 'function', name, description, parameters: schema, strict: true };
  if (feature === 'web search') return [{ type: 'web_search' }];
  return feature === 'deferred tools' ? [{ type: 'tool_search' }, { ...read, defer_loading: true }] : [read];
}

async function imageUrl() {
  return `data:image/png;base64,${await readImage()}`;
}

function add(usage, input, output) {
  usage.input += input;
  usage.output += output;
}
