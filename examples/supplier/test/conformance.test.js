const { once } = require('node:events');
const { after, before, describe, it } = require('node:test');
const { supplierConformance } = require('tollgate/supplier-conformance');
const { supplier } = require('../supplier');
const { exampleServer } = require('./server');

describe('the driver', () => {
  const server = exampleServer('secret');
  const closed = exampleServer('secret');
  let nobody;
  before(async () => {
    for (const each of [server, closed]) await once(each.listen(0, '127.0.0.1'), 'listening');
    nobody = closed.address().port;
    closed.close();
  });
  after(() => server.close());

  const opened = (url) => supplier.open({ url, token: 'secret' }, {});
  const subject = {
    open: () => opened(`http://127.0.0.1:${server.address().port}`),
    openUnreachable: () => opened(`http://127.0.0.1:${nobody}`),
    spec: { cpu: 1, memoryGiB: 1, volumeGiB: 0, gpu: [], ports: false, settings: { template: 'base' } },
    webServer: (port) => `exec python3 -m http.server ${port}`,
  };
  for (const { name, run } of supplierConformance(subject)) it(name, run);
});
