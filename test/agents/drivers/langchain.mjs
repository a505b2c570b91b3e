import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { drive, INSTRUCTIONS, READ_FILE, readFileTool, readImage } from './driver.mjs';

const read = tool(readFileTool, { name: READ_FILE.name, description: READ_FILE.description, schema: READ_FILE.schema });

await drive({
  converse: async ({ feature, prompt, model, protocol }) => {
    const agent = modelOf(protocol, model).bindTools([toolOf(feature, protocol)]);
    const image =
      feature === 'images'
        ? [{ type: 'image_url', image_url: { url: `data:image/png;base64,${await readImage()}` } }]
        : [];
    const messages = [
      new SystemMessage(INSTRUCTIONS),
      new HumanMessage({ content: [...image, { type: 'text', text: prompt }] }),
    ];
    const usage = { input: 0, output: 0 };
    let thoughts = '';
    for (;;) {
      const message = await lastOf(await agent.stream(messages));
      usage.input += message.usage_metadata.input_tokens;
      usage.output += message.usage_metadata.output_tokens;
      thoughts += message.contentBlocks.map(({ reasoning = '' }) => reasoning).join('');
      if (message.tool_calls.length === 0) return { text: message.text, thoughts, usage };
      messages.push(message);
      for (const { id, args } of message.tool_calls) {
        messages.push(new ToolMessage({ tool_call_id: id, content: await readFileTool(args) }));
      }
    }
  },
});

function modelOf(protocol, model) {
  if (protocol === 'Messages') return new ChatAnthropic({ model, maxTokens: 64_000 });
  return new ChatOpenAI({ model, useResponsesApi: protocol === 'Responses' });
}

function toolOf(feature, protocol) {
  if (feature !== 'web search') return read;
  return protocol === 'Messages'
    ? { type: 'web_search_20250305', name: 'web_search', max_uses: 1 }
    : { type: 'web_search' };
}

/** Joins the pieces of a stream to one message. */
async function lastOf(stream) {
  let whole;
  for await (const piece of stream) whole = whole === undefined ? piece : whole.concat(piece);
  return whole;
}
