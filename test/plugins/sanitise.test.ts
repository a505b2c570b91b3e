import { expect } from 'chai';
import { sanitise } from '../../plugins/operator/record-upstream';

describe('sanitised recordings of vendors', () => {
  it('have invented ids and account names, the same for the same original', () => {
    const body = '{"id":"msg_01ABCDEFGH","organization_id" : "org-12345678","user":"u","tool_use_id":"msg_01ABCDEFGH"}';
    expect(sanitise([body])).to.deep.equal([
      '{"id":"recorded-1","organization_id" : "recorded-2","user":"recorded-3","tool_use_id":"recorded-1"}',
    ]);
  });

  it('have invented values in every text, even if an id is part of another word', () => {
    const stream = 'data: {"response":{"id":"resp_0123456789"}}\n\ndata: {"item_id":"resp_0123456789"}\n\n';
    expect(sanitise(['{"previous":"of resp_0123456789"}', stream])).to.deep.equal([
      '{"previous":"of recorded-1"}',
      'data: {"response":{"id":"recorded-1"}}\n\ndata: {"item_id":"recorded-1"}\n\n',
    ]);
  });

  it('keep every other byte', () => {
    const kept =
      ' {"model":"large", "usage":{"input":1.0e1},"text":"the \\"id\\":\\"x\\" of it","id":null,"empty_id":""}\r\n';
    expect(sanitise([kept])).to.deep.equal([kept]);
  });
});
