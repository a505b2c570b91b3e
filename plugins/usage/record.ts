import { usageFieldsOf, usageShapes, usageShower } from '../../core/catalog/usage-fields';
import { object } from '../../core/http/shape';

/** The columns of the CSV. Operators get more columns, because they see several accounts and rollouts. */
export const RECORD_COLUMNS = usageFieldsOf('all');
export const OPERATOR_COLUMNS = usageFieldsOf('operators');

/** Converts a record to the form that its account sees. */
export const toRecord = usageShower('all');
export const toRecordOfAccount = usageShower('all', 'operators');
export const USAGE_RECORD = object(usageShapes('all'));

/** Converts a record to the form for operators, with the reasons for its routing; docs/console.md. */
export const toExplainedRecord = usageShower('all', 'operators', 'operator-details');
export const EXPLAINED_RECORD = object(usageShapes('all', 'operators', 'operator-details'));

/** Converts a record to the form that its account sees in the console. */
export const toConsoleRecord = usageShower('all', 'operator-details');
export const CONSOLE_RECORD_FIELDS = usageShapes('all', 'operator-details');
