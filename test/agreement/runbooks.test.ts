import { expect } from 'chai';
import { parse } from 'yaml';
import { textOf } from '../support/sources';

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly annotations: Readonly<Record<string, string>> }[];
  }[];
}

const FILE = 'docs/runbooks.md';
const { groups } = parse(textOf('deploy/prometheus/alerts.yml')) as Rules;
const alerts = groups.flatMap(({ rules }) => rules);
const [, ...sections] = textOf(FILE).split(/^## /m);

describe('the runbooks', () => {
  it('have a section for each alert, in the order of the alerts, and each alert links to its section', () => {
    const titles = sections.map((section) => section.split('\n')[0]);
    expect(titles).to.deep.equal(alerts.map(({ alert }) => alert));
    for (const { alert, annotations } of alerts)
      expect(annotations['runbook'], alert).to.equal(`${FILE}#${alert.toLowerCase()}`);
  });

  it('explain what each alert means, where to look, what to do and when it is over', () => {
    for (const section of sections) {
      const parts = [...section.matchAll(/^- \*\*(\w+)\*\*: \S/gm)].map(([, part]) => part);
      expect(parts, section).to.deep.equal(['Means', 'Look', 'Do', 'Over']);
    }
  });
});
