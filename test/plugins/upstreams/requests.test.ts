import assert from 'node:assert/strict';
import { adapterNames, findAdapter } from '../../../core/catalog/adapters';
import type { ModelCall } from '../../../core/catalog/upstream';
import { NoteReader } from '../../../core/protocols/notes';
import upstreams from '../../../plugins/upstreams';
import chat from '../../../plugins/upstreams/chat';
import messages from '../../../plugins/upstreams/messages';
import responses from '../../../plugins/upstreams/responses';

function call(members: Record<string, string>, more: Partial<ModelCall> = {}): ModelCall {
  return {
    protocol: 'chat',
    model: 'native',
    stream: true,
    query: '',
    headers: { 'content-type': 'application/json', accept: '*/*' },
    members: new Map(Object.entries(members)),
    streamUsage: true,
    ...more,
  };
}

function streamOptions(asked: ModelCall): unknown {
  const edit = chat.request(asked, {}).edits.find(({ member }) => member === 'stream_options');
  return edit !== undefined && 'set' in edit ? JSON.parse(edit.set) : undefined;
}

describe('a request to an upstream', () => {
  it('requests usage from a Chat stream, and keeps the other stream options', () => {
    assert.deepEqual(streamOptions(call({})), { include_usage: true });
    assert.deepEqual(streamOptions(call({ stream_options: 'null' })), { include_usage: true });
    assert.deepEqual(streamOptions(call({ stream_options: '{"include_usage":false,"x":[1]}' })), {
      include_usage: true,
      x: [1],
    });
  });

  it('does not request usage without a stream, or if the upstream does not support it', () => {
    assert.equal(streamOptions(call({}, { stream: false })), undefined);
    assert.equal(streamOptions(call({}, { streamUsage: false })), undefined);
  });

  it('leaves a model name unchanged that is already right, and drops the member `stream` if it is null', () => {
    const { edits } = messages.request(call({ model: '"native"', stream: 'null' }, { stream: false }), {});
    assert.deepEqual(edits, [
      { member: 'priority', drop: true },
      { member: 'stream', drop: true },
    ]);
  });

  it('adds a version of the Messages protocol only if the client sent none', () => {
    const headers = (sent: Record<string, string>) => messages.request(call({}, { headers: sent }), {}).headers;
    assert.deepEqual(headers({ accept: 'x', 'content-type': 'y' }), { accept: 'x', 'anthropic-version': '2023-06-01' });
    assert.deepEqual(headers({ 'anthropic-version': '1' }), { 'anthropic-version': '1' });
    assert.deepEqual(headers({ 'protoa-version': '1' }), { 'protoa-version': '1' });
  });

  it('has the path, the query and the headers that the operator configures', () => {
    const settings = { path: { chat: '/v2/{model}/chat?version=1' }, headers: { 'x-title': 'Example', accept: 'all' } };
    const asked = call({}, { model: 'a/b c', query: '?beta=true' });
    const { path, headers } = chat.request(asked, settings);
    assert.equal(path, '/v2/a%2Fb%20c/chat?version=1&beta=true');
    assert.deepEqual(headers, { accept: 'all', 'x-title': 'Example' });
    assert.equal(chat.request(call({}), settings).path, '/v2/native/chat?version=1');
    assert.equal(messages.request({ ...asked, protocol: 'messages' }, settings).path, '/v1/messages?beta=true');
    const compact = call({}, { protocol: 'responses', operation: '/compact' });
    const { path: at } = responses.request(compact, { path: { responses: '/responses?version=1' } });
    assert.equal(at, '/responses/compact?version=1');
  });

  it('has the credential in the header that the operator configures', () => {
    assert.deepEqual(chat.authorize('secret', { auth: 'api-key' }), { 'api-key': 'secret' });
    assert.deepEqual(messages.authorize('secret', { auth: 'bearer' }), { authorization: 'Bearer secret' });
  });

  it('has the credential in the form of its protocol', () => {
    assert.deepEqual(messages.authorize('secret', {}), { 'x-api-key': 'secret' });
    assert.deepEqual(chat.authorize('secret', {}), { authorization: 'Bearer secret' });
  });

  it('is made by the adapter that the configuration names', () => {
    upstreams.register?.();
    upstreams.register?.();
    for (const name of ['chat', 'messages']) assert.ok(adapterNames().includes(name));
    assert.deepEqual(findAdapter('chat')?.protocols, chat.protocols);
  });
});

describe('an event of a stream too large to be parsed at once', () => {
  it('counts as content, by its length', () => {
    const data = JSON.stringify({
      type: 'content_block_delta',
      delta: { type: 'text_delta', text: 'x'.repeat(1_100_000) },
    });
    for (const protocol of ['messages', 'chat'] as const) {
      assert.deepEqual(new NoteReader(protocol).event({ name: 'content_block_delta', data }), {
        content: true,
        contentBytes: data.length,
      });
    }
  });
});
