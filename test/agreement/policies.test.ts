import { expect } from 'chai';
import { parse } from 'yaml';
import { policies } from '../../policies';
import { foldersIn, textOf } from '../support/sources';

const folders = foldersIn('policies');
const listed = policies.map(({ name }) => name);
const settings = parse(textOf('gateway.config.yml')) as {
  policies: string[];
  pipelines: Record<string, { policies: Record<string, unknown>[] }>;
};

describe('policies', () => {
  it('each have their own folder under policies/', () => expect(listed).to.have.members(folders));

  it('are listed under `policies` in gateway.config.yml', () => expect(settings.policies).to.deep.equal(listed));

  it('are imported by policies/index.ts under the name of their folder', () => {
    for (const folder of folders) {
      const [, imported] = new RegExp(`import (\\w+) from './${folder}'`).exec(textOf('policies/index.ts')) ?? [];
      expect(imported, folder).to.equal(folder.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()));
      expect(textOf(`policies/${folder}/index.ts`), folder).to.contain(`name: '${folder}'`);
    }
  });

  it('appear in every shipped pipeline in the order in which a call runs them', () => {
    for (const [name, pipeline] of Object.entries(settings.pipelines)) {
      const used = pipeline.policies.flatMap((entry) => Object.keys(entry));
      const otherRouting = name === 'direct' ? 'strategy-routing' : 'direct-routing';
      expect(used, name).to.deep.equal(listed.filter((each) => each !== otherRouting));
    }
  });

  it('all appear in docs/request-path.md, which describes the path of a call', () => {
    for (const name of listed) expect(textOf('docs/request-path.md')).to.contain(`\`${name}\``);
  });
});
