// biome-ignore-all lint/suspicious/noTemplateCurlyInString: so the variables of a YAML file are written
import { join } from 'node:path';
import { expect } from 'chai';
import * as fc from 'fast-check';
import { ConfigurationError, readYamlFile, type YamlFile } from '../../../core/configuration/yaml-file';
import { temporaryFolder } from '../../support/configuration-folder';

function read(text: string, env: NodeJS.ProcessEnv = {}): YamlFile {
  return readYamlFile(join(temporaryFolder({ 'a.yml': text }), 'a.yml'), env);
}

function valueRead(text: string, env: NodeJS.ProcessEnv = {}): unknown {
  return read(text, env).value;
}

function refusalOf(text: string, env: NodeJS.ProcessEnv = {}): string {
  try {
    read(text, env);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  throw new Error('the file was read');
}

describe('a YAML file', () => {
  it('with an unclosed bracket is refused with only its first errors', () => {
    const lines = refusalOf(`a: [\n${'b: { c: 1 }\n'.repeat(100)}`).split('\n');
    expect(lines).to.have.lengthOf(3);
    expect(lines[0]).to.match(/^a\.yml:2:/);
  });

  describe('a YAML file with variables', () => {
    it('is parsed with each variable replaced by its value, even inside a text', () => {
      expect(valueRead('a: ${X}\nb: http://${HOST}:${PORT}/x', { X: 'hello', HOST: 'h', PORT: '81' })).to.deep.equal({
        a: 'hello',
        b: 'http://h:81/x',
      });
    });

    it("parses an unquoted variable's value as YAML and keeps a quoted one as text", () => {
      expect(valueRead('a: ${N}\nb: "${N}"\nc: \'${N}\'\nd: ${T}', { N: '8080', T: 'true' })).to.deep.equal({
        a: 8080,
        b: '8080',
        c: '8080',
        d: true,
      });
    });

    it('uses the default of a variable that is unset or empty', () => {
      const text = 'a: ${X:-5}\nb: ${X:-}\nc: ${X:-a:b}';
      expect(valueRead(text)).to.deep.equal({ a: 5, b: null, c: 'a:b' });
      expect(valueRead(text, { X: '' })).to.deep.equal({ a: 5, b: null, c: 'a:b' });
      expect(valueRead(text, { X: '7' })).to.deep.equal({ a: 7, b: 7, c: 7 });
    });

    it('reports each unset variable without a default, with line and column', () => {
      expect(refusalOf('a: 1\nb:\n  - ${ONE}\n  - x${TWO}${THREE}')).to.equal(
        [
          'a.yml:3:5: the environment variable ONE is not set; set it, or give a default with ${ONE:-default}',
          'a.yml:4:5: the environment variable TWO is not set; set it, or give a default with ${TWO:-default}',
          'a.yml:4:5: the environment variable THREE is not set; set it, or give a default with ${THREE:-default}',
        ].join('\n'),
      );
    });

    it('reads $${NAME} as the text ${NAME}', () => {
      expect(valueRead('a: $${X}\nb: "$${X} and ${X}"', { X: 'x' })).to.deep.equal({ a: '${X}', b: '${X} and x' });
    });

    it('ignores variables in comments', () => {
      expect(valueRead('a: 1 # ${NOT_SET}')).to.deep.equal({ a: 1 });
    });

    for (const secret of [
      '[1, 2]',
      'b: c',
      '"open',
      '&anchor b',
      'b\nc: d',
      '12345678901234567890',
      '${OTHER}',
      '$&',
    ]) {
      it(`keeps the value ${JSON.stringify(secret)} of a variable as one text`, () => {
        expect(valueRead('a: ${X}\nz: 1', { X: secret })).to.deep.equal({ a: secret, z: 1 });
      });
    }

    it("keeps its structure and never shows a variable's value, whatever the value is", () => {
      void fc.assert(
        fc.property(fc.string({ unit: 'binary', minLength: 1 }), (value) => {
          const read = valueRead('a: ${X}\nb: "${X}"\nc: [1, 2]', { X: value }) as Record<string, unknown>;
          expect(Object.keys(read)).to.deep.equal(['a', 'b', 'c']);
          expect(read['b']).to.equal(value);
          expect(typeof read['a'] === 'object' && read['a'] !== null).to.equal(false);
        }),
      );
    });

    it('does not show a secret in an error about another part of the file', () => {
      expect(refusalOf('a: ${SECRET}\nb: ${NOT_SET}', { SECRET: 'hush' })).not.to.contain('hush');
      expect(refusalOf('a: ${SECRET}\nb: [1', { SECRET: 'hush' })).not.to.contain('hush');
    });
  });

  it('is refused with line and column if it is not valid YAML', () => {
    expect(refusalOf('a: 1\nb: [1, 2\n')).to.match(/^a\.yml:3:1: /);
    expect(refusalOf('a:\n\t- 1\n')).to.match(/^a\.yml:2:1: .*[Tt]ab/);
  });

  it('is refused if a mapping has a name twice, with the position of the second one', () => {
    expect(refusalOf('a: 1\nb: 2\na: 3\n')).to.equal('a.yml:3:1: Map keys must be unique');
    expect(refusalOf('x:\n  a: 1\n  a: 3\n')).to.equal('a.yml:3:3: Map keys must be unique');
  });

  it('is refused if an alias has no anchor, with the position of the alias', () => {
    expect(refusalOf('a: 1\nb: *nothing\n')).to.equal(
      'a.yml:2:4: the anchor &nothing is not defined before this alias',
    );
    expect(valueRead('a: &x 5\nb: *x\n')).to.deep.equal({ a: 5, b: 5 });
  });

  it('may use one anchor hundreds of times, but is refused if aliases of aliases grow exponentially', () => {
    const prices = Array.from({ length: 500 }, (_, index) => `m${index}: *price\n`).join('');
    expect(valueRead(`price: &price { input: 1 }\n${prices}`))
      .to.have.property('m499')
      .that.deep.equals({ input: 1 });
    const levels = Array.from({ length: 9 }, (_, index) => {
      const nine = Array.from({ length: 9 }, () => (index === 0 ? 'x' : `*l${index - 1}`));
      return `l${index}: &l${index} [${nine.join(', ')}]\n`;
    });
    expect(refusalOf(levels.join(''))).to.match(/^a\.yml: has aliases that stand for more than 10000 values/);
  });

  it('is refused if it does not exist, with its path and the variable that sets the path', () => {
    expect(() => readYamlFile(join(temporaryFolder({}), 'gone.yml'), {})).to.throw(
      ConfigurationError,
      'gone.yml: cannot be read (ENOENT); TOLLGATE_CONFIG_DIR names the folder it is looked for in',
    );
  });

  describe('the place of a value in a YAML file', () => {
    const file = read('a:\n  b:\n    - x\n    - c: 1\n8: y\n');
    for (const [path, line, column] of [
      [['a'], 1, 1],
      [['a', 'b'], 2, 3],
      [['a', 'b', 1], 4, 7],
      [['a', 'b', 1, 'c'], 4, 7],
      [['a', 'b', 1, 'missing'], 4, 7],
      [['a', 'missing', 'deeper'], 1, 1],
      [[8], 5, 1],
      [['nothing'], 1, 1],
      [[], 1, 1],
    ] as const) {
      it(`is found for ${path.join('.') || 'the file'}: line ${line}, column ${column}`, () => {
        expect(file.locate(path)).to.deep.equal({ file: 'a.yml', line, column });
      });
    }
  });
});
