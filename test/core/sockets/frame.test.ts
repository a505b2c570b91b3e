import { expect } from 'chai';
import { bodyOf, meanwhile } from '../../../core/sockets/frame';
import { rejection } from '../../support/rejection';

const textOf = async (frame: string) => Buffer.concat([...(await bodyOf(Buffer.from(frame))).chunks]).toString();

describe('a WebSocket frame from a client', () => {
  it('becomes a request body by two edits, and keeps every other byte', async () => {
    expect(await textOf('{"type":"response.create","model":"a","input":" b "}')).to.equal(
      '{"model":"a","input":" b ","stream":true}',
    );
    expect(await textOf('{ "stream" : false, "model":"a" , "type":"response.create" }')).to.equal(
      '{ "stream" : true, "model":"a"  }',
    );
    expect(await textOf('{"type":"response\\u002ecreate"}')).to.equal('{"stream":true}');
  });

  it('is refused when it is not a `response.create`', async () => {
    for (const [frame, code] of [
      ['{"type":"response.create"', 'INVALID_JSON'],
      ['"response.create"', 'INVALID_FIELD'],
      ['{"response":{"type":"response.create"}}', 'INVALID_FIELD'],
      ['{"type":["response.create"]}', 'INVALID_FIELD'],
      ['{"type":"response.create","type":"response.create"}', 'INVALID_FIELD'],
    ] as const)
      expect(await rejection(bodyOf(Buffer.from(frame)))).to.include({ code });
  });

  it('is refused by its type when it arrives during another call', () => {
    expect(meanwhile(Buffer.from('{"type":"response.create"}')).code).to.equal('CONFLICT');
    expect(meanwhile(Buffer.from('nothing')).code).to.equal('CONFLICT');
    expect(meanwhile(Buffer.from(' { "type" : "response.cancel"}')).options.param).to.equal('type');
  });
});
