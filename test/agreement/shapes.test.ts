import assert from 'node:assert/strict';
import { shapesFile } from '../support/shapes';
import { textOf } from '../support/sources';

describe('shapes/answers.ts', () => {
  it('has exactly the answers that the routes declare', async () => {
    const hint = 'shapes/answers.ts is not what the routes answer: run "npm run shapes".';
    assert.ok(textOf('shapes/answers.ts') === (await shapesFile()), hint);
  });
});
