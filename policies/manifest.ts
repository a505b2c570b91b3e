import { policiesManifest } from '../core/gateway/manifest';
import { policies } from '.';

export = policiesManifest('policies', policies);
