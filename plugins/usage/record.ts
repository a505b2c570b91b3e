import { usageFieldsOf, usageShapes, usageShower } from '../../core/catalog/usage-fields';
import { object } from '../../core/http/shape';

/** The columns of the CSV; operators, who see several accounts at once and what goes out in stages, get more. */
export const RECORD_COLUMNS = usageFieldsOf('all');
export const OPERATOR_COLUMNS = usageFieldsOf('operators');

/** A record as its account sees it. */
export const toRecord = usageShower('all');
export const toRecordOfAccount = usageShower('all', 'operators');
export const RECORD = object(usageShapes('all'));

/** With why the call went where it went, as docs/console.md says it. */
export const toExplainedRecord = usageShower('all', 'operators', 'operator-details');
export const EXPLAINED_RECORD = object(usageShapes('all', 'operators', 'operator-details'));

/** An account's own record as the console shows it. */
export const toConsoleRecord = usageShower('all', 'operator-details');
export const CONSOLE_RECORD_FIELDS = usageShapes('all', 'operator-details');
