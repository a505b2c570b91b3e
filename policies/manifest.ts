import { policiesManifest } from '../core/express-gateway';
import { policies } from '.';

export = policiesManifest('policies', policies);
