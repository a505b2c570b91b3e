import { requestMembersPage } from './request-members-page';

process.stdout.write(requestMembersPage());
