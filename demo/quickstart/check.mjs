const WITHIN_MS = 30_000;

/** Makes an unstreamed call, a streamed call and an embeddings call, and reports each. Returns 0, or 1 if one failed. */
export async function checkCalls({ url, key }, say) {
  const results = [await result('call in one piece', () => callInOnePiece(url, key), say)];
  results.push(await result('streamed call', () => callStreamed(url, key), say));
  results.push(await result('embeddings', () => callEmbeddings(url, key), say));
  return results.every(Boolean) ? 0 : 1;
}

async function result(name, call, say) {
  try {
    say(`ok      ${name}: ${await call()}`);
    return true;
  } catch (error) {
    say(`failed  ${name}: ${error.message}`);
    return false;
  }
}

async function callInOnePiece(url, key) {
  const body = { model: 'demo-model', max_tokens: 200, messages: HELLO };
  const answer = await post(`${url}/v1/messages`, { 'x-api-key': key }, body);
  const message = await answer.json();
  if (!message.content?.[0]?.text) throw new Error('the answer has no text');
  const cost = answer.headers.get('x-ai-cost');
  if (!/^\d+\.\d{8}$/.test(cost ?? '')) throw new Error(`X-AI-Cost is ${cost}`);
  return `${message.usage?.output_tokens} tokens from ${answer.headers.get('x-routing-provider')} for USD ${cost}`;
}

async function callStreamed(url, key) {
  const body = { model: 'demo-model', stream: true, messages: HELLO };
  const answer = await post(`${url}/v1/chat/completions`, { authorization: `Bearer ${key}` }, body);
  const events = (await answer.text()).split('\n\n').filter((event) => event !== '');
  if (events.at(-1) !== 'data: [DONE]') throw new Error(`the stream ends with ${events.at(-1)}`);
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.replace(/^data: /, '')));
  if (!chunks.some((chunk) => chunk.choices?.[0]?.delta?.content)) throw new Error('the stream has no text');
  const { usage } = chunks.findLast((chunk) => chunk.usage) ?? {};
  if (usage === undefined) throw new Error('the stream has no usage');
  return `${events.length} events, ${usage.completion_tokens} tokens${usage.cost === undefined ? '' : ` for USD ${usage.cost}`}`;
}

async function callEmbeddings(url, key) {
  const body = { model: 'demo-embedding', input: ['Hello', 'Good morning'] };
  const answer = await post(`${url}/v1/embeddings`, { authorization: `Bearer ${key}` }, body);
  const { data, usage } = await answer.json();
  if (data?.length !== 2 || !data.every(({ embedding }) => embedding.length > 0))
    throw new Error('a vector is missing');
  return `${data.length} vectors, ${usage?.prompt_tokens} tokens for USD ${answer.headers.get('x-ai-cost')}`;
}

const HELLO = [{ role: 'user', content: 'Hello' }];

async function post(url, headers, body) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(WITHIN_MS),
  });
  if (answer.ok) return answer;
  throw new Error(`${answer.status} ${await answer.text()}`);
}
