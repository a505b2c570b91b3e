import { expect } from 'chai';
import type { EndpointSettings, PipelineSettings } from '../../../core/configuration/pipelines';
import { type CallPlace, compileCallTable } from '../../../core/gateway/call-table';
import { definePolicy, type Policy } from '../../../core/gateway/policy';
import { hostOf } from '../../../core/http/request-head';
import { SampleResponse, sampleGateway, sampleRequest } from '../../support/exchange';

/** Makes a pipeline that answers with its own name. */
function pipeline(name: string, endpoints: readonly Partial<EndpointSettings>[]): PipelineSettings<Policy> {
  const policy = definePolicy({
    contract: 'policy/1',
    name: 'answer',
    summary: '',
    schema: { type: 'object', properties: {} },
    needs: [],
    provides: [],
    answers: true,
    prepare: () => async (_call, _request, response) => void response.end(name),
  });
  return {
    name,
    endpoints: endpoints.map((each) => ({
      name: 'e',
      host: undefined,
      paths: ['/v1/messages'],
      methods: ['POST'],
      ...each,
    })),
    steps: [{ policy, settings: {} }],
  };
}

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly host?: string;
}

function placeOf(
  pipelines: readonly PipelineSettings<Policy>[],
  { method = 'POST', path = '/v1/messages', host }: Asked,
): CallPlace {
  const request = sampleRequest(method, path, host === undefined ? {} : { host });
  return compileCallTable(pipelines, sampleGateway()).find(request, hostOf(request));
}

/** Returns the name of the pipeline that serves a request, or the error. */
async function served(pipelines: readonly PipelineSettings<Policy>[], asked: Asked): Promise<string> {
  const place = placeOf(pipelines, asked);
  if (place.kind !== 'call') return place.kind === 'nothing' ? 'nothing' : `only ${place.allow.join(', ')}`;
  const request = sampleRequest('POST', '/');
  const response = new SampleResponse(request);
  place.serve(request, response);
  await response.closed_;
  return response.body;
}

describe('the table of model calls', () => {
  const plain = [
    pipeline('one', [{ paths: ['/v1/messages', '/default/v1/messages'] }]),
    pipeline('two', [{ paths: ['/cost/v1/messages'] }]),
  ];

  for (const [path, expected] of [
    ['/v1/messages', 'one'],
    ['/cost/v1/messages', 'two'],
    ['/v1/messages?beta=true', 'one'],
    ['/v1/messages/', 'nothing'],
    ['/V1/messages', 'nothing'],
    ['//v1/messages', 'nothing'],
    ['/v1/%6dessages', 'nothing'],
    ['/x/../v1/messages', 'nothing'],
    ['http://elsewhere.example/v1/messages', 'nothing'],
    ['/__proto__', 'nothing'],
  ] as const) {
    it(`routes ${path} to ${expected}`, async () => expect(await served(plain, { path })).to.equal(expected));
  }

  it('prefers a route for one host to a route for any host, whatever their order', async () => {
    const any = pipeline('any', [{}]);
    const specific = pipeline('specific', [{ host: 'api.example' }]);
    for (const pipelines of [
      [any, specific],
      [specific, any],
    ]) {
      expect(await served(pipelines, { host: 'api.example' })).to.equal('specific');
      expect(await served(pipelines, { host: 'other.example' })).to.equal('any');
      expect(await served(pipelines, {})).to.equal('any');
    }
  });

  it('matches any host with "*", and exactly one label with a "*" inside a host name', async () => {
    const hosts = [
      pipeline('any', [{ host: '*', paths: ['/a'] }]),
      pipeline('label', [{ host: '*.p.example', paths: ['/b'] }]),
    ];
    expect(await served(hosts, { path: '/a', host: 'x' })).to.equal('any');
    expect(await served(hosts, { path: '/b', host: 'acme.p.example' })).to.equal('label');
    for (const host of ['p.example', '.p.example', 'a.b.p.example', 'acme.pxexample', 'acme.p.example.evil'])
      expect(await served(hosts, { path: '/b', host })).to.equal('nothing');
  });

  for (const [host, expected] of [
    ['API.Example:8080', 'api.example'],
    ['api.example.', 'api.example'],
    ['[::1]:8080', '[::1]'],
  ] as const) {
    it(`reads the Host header ${host} as ${expected}`, () =>
      expect(hostOf(sampleRequest('GET', '/', { host }))).to.equal(expected));
  }
});
