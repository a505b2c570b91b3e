import { expect } from 'chai';
import { StartFailure } from '../../../core/base/start-failure';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import type { LoadedPlugin } from '../../../core/serving/load-plugins';
import { routesOf, startPlugins } from '../../../core/serving/start-plugins';
import { rejection } from '../../support/rejection';

const GATEWAY = {
  configuration: {
    pipelines: [
      { endpoints: [{ name: 'default', host: '*', paths: ['/v1/messages', '/cost/v1/messages'], methods: ['POST'] }] },
      { endpoints: [{ name: 'direct', host: '*.p.localhost', paths: ['/v1/direct'], methods: ['POST'] }] },
    ],
  },
} as unknown as PluginGateway;

const route = (method: string, path: string, listener = 'public') => ({ listener, method, path });

/** Makes a plugin with only the parts that a test needs. */
function plugin(name: string, own: object): LoadedPlugin {
  return {
    package: `./${name}`,
    plugin: { name, ...own },
    settings: {},
  } as unknown as LoadedPlugin;
}

function refusal(...plugins: LoadedPlugin[]): string {
  try {
    routesOf(plugins, GATEWAY);
  } catch (error) {
    expect(error).to.be.instanceOf(StartFailure);
    return (error as Error).message;
  }
  throw new Error('the routes were accepted');
}

describe('The routes of plugins', () => {
  it('make the start fail with the names of both plugins if they serve the same path, even with other parameter names', () => {
    const one = plugin('one', { routes: () => [route('GET', '/v1/things/{id}')] });
    const other = plugin('other', { routes: () => [route('GET', '/v1/things/{thingId}')] });
    expect(refusal(one, other))
      .to.include('"one" (./one in system.config.yml) and "other" (./other')
      .and.include('both answer GET /v1/things/{thingId}');
  });

  for (const [method, path] of [
    ['GET', '/v1/things/latest'],
    ['GET', '/v1/{kind}/{id}'],
    ['*', '/v1/things/{id}'],
  ] as const) {
    it(`make the start fail with the names of both plugins if one serves a path of the other: ${method} ${path}`, () => {
      const one = plugin('one', { routes: () => [route('GET', '/v1/things/{id}')] });
      const thief = plugin('thief', { routes: () => [route(method, path)] });
      for (const plugins of [
        [one, thief],
        [thief, one],
      ])
        expect(refusal(...plugins))
          .to.match(/"one".*"thief"|"thief".*"one"/)
          .and.include('both answer');
    });
  }

  it('may overlap if a fixed segment matches a parameter of the same plugin or a rest pattern of another plugin', () => {
    const routes = [route('GET', '/v1/things/{id}'), route('GET', '/v1/things/latest')];
    const rest = [route('GET', '/v1/{rest...}')];
    const plugins = [plugin('one', { routes: () => routes }), plugin('other', { routes: () => rest })];
    expect(routesOf(plugins, GATEWAY)).to.deep.equal([...routes, ...rest]);
  });

  for (const [method, path] of [
    ['POST', '/v1/messages'],
    ['*', '/cost/v1/messages'],
    ['POST', '/{strategy}/v1/messages'],
    ['POST', '/v1/{rest...}'],
  ] as const) {
    it(`make the start fail if one has the path of a model call: ${method} ${path}`, () => {
      const thief = plugin('thief', { routes: () => [route(method, path)] });
      expect(refusal(thief)).to.include('"thief"').and.include('the endpoint "default"');
    });
  }
});

describe('The start of plugins', () => {
  it('fails with an error that names the plugin that does not start in time', async () => {
    const slow = plugin('slow', { start: () => new Promise(() => {}) });
    const error = await rejection(startPlugins([slow], GATEWAY, 20));
    expect(error).to.be.instanceOf(StartFailure);
    expect(error.message).to.include('"slow" (./slow in system.config.yml) has not started within 0.02 s');
  });

  it('fails with an error that names the plugin that throws', async () => {
    const broken = plugin('broken', { start: () => Promise.reject(new Error('no port is free')) });
    expect((await rejection(startPlugins([broken], GATEWAY))).message).to.match(
      /"broken" \(.*\) failed in `start`.*no port/,
    );
  });
});
