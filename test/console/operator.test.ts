import { openOperatorPage, type TestOperatorPage } from '../support/operator-page';
import { looks } from './operator/looks';
import { operators } from './operator/operators';
import { tour } from './operator/tour';

/** All stories share one gateway and one browser. */
describe("the operator's page in a real browser", function () {
  this.timeout(120_000);
  let opened: TestOperatorPage;

  before(async function () {
    this.timeout(180_000);
    opened = await openOperatorPage();
  });
  after(() => opened?.stop());

  const the = () => opened;
  tour(the);
  operators(the);
  looks(the);
});
