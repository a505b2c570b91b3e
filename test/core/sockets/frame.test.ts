import { expect } from 'chai';
import { meanwhile, readFrame } from '../../../core/sockets/frame';
import { rejection } from '../../support/rejection';

const read = (frame: string) => readFrame(Buffer.from(frame));
const textOf = async (frame: string) => Buffer.concat([...(await read(frame)).body.chunks]).toString();

describe('a WebSocket frame from a client', () => {
  it('becomes a request body by two edits, which keep every other byte', async () => {
    expect(await textOf('{"type":"response.create","model":"a","input":" b "}')).to.equal(
      '{"model":"a","input":" b ","stream":true}',
    );
    expect(await textOf('{ "stream" : false, "model":"a" , "type":"response.create" }')).to.equal(
      '{ "stream" : true, "model":"a"  }',
    );
    expect(await textOf('{"type":"response\\u002ecreate"}')).to.equal('{"stream":true}');
  });

  it('is identified by its `event_id`, which is removed from the body, and by its bytes', async () => {
    const [one, same, other] = [
      await read('{"type":"response.create","event_id":"a","input":"b"}'),
      await read('{"type":"response.create","event_id":"a","input":"b"}'),
      await read('{"type":"response.create","event_id":"a","input":"c"}'),
    ];
    expect(one.identity).to.deep.equal(same.identity);
    expect(one.identity.eventId).to.equal('a');
    expect(one.identity.hash).not.to.equal(other.identity.hash);
    expect(Buffer.concat([...one.body.chunks]).toString()).to.equal('{"input":"b","stream":true}');
  });

  it('is refused if its type is not `response.create`', async () => {
    for (const [frame, code] of [
      ['{"type":"response.create"', 'INVALID_JSON'],
      ['"response.create"', 'INVALID_FIELD'],
      ['{"response":{"type":"response.create"}}', 'INVALID_FIELD'],
      ['{"type":["response.create"]}', 'INVALID_FIELD'],
      ['{"type":"response.create","type":"response.create"}', 'INVALID_FIELD'],
      ['{"type":"response.create","event_id":7}', 'INVALID_FIELD'],
      ['{"type":"response.create","event_id":"a","event_id":"b"}', 'INVALID_FIELD'],
      [`{"type":"response.create","event_id":"${'x'.repeat(600)}"}`, 'INVALID_FIELD'],
    ] as const)
      expect(await rejection(read(frame))).to.include({ code });
  });

  it('is refused if it arrives during another call, with an error that depends on its type', () => {
    expect(meanwhile(Buffer.from('{"type":"response.create"}')).code).to.equal('CONFLICT');
    expect(meanwhile(Buffer.from('nothing')).code).to.equal('CONFLICT');
    expect(meanwhile(Buffer.from(' { "type" : "response.cancel"}')).options.param).to.equal('type');
  });
});
