import { SCOPES } from '../access/index.ts';
import { listOf, type Operation, WHOLE } from './openapi-operation.ts';
import { NewWebhook } from '../integrations/webhook.ts';
import * as schemas from './schemas.ts';

const AUTHOR = {
  type: ['object', 'null'],
  properties: {
    kind: { enum: ['user', 'agent', 'system'] },
    id: { type: 'string' },
    name: { type: 'string' },
  },
};
const SCOPE_LIST = { type: 'array', items: { enum: [...SCOPES] } };
const PATTERNS = { type: ['array', 'null'], items: { type: 'string' } };
const MOMENT = { type: ['integer', 'null'] };
const KEY = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    tenant: { type: 'string' },
    name: { type: 'string' },
    scopes: SCOPE_LIST,
    author: AUTHOR,
    conversations: PATTERNS,
    createdAt: WHOLE,
    createdBy: { type: ['string', 'null'] },
    expiresAt: MOMENT,
    revokedAt: MOMENT,
    previousUntil: MOMENT,
  },
  required: [
    'id',
    'tenant',
    'name',
    'scopes',
    'author',
    'conversations',
    'createdAt',
    'createdBy',
    'expiresAt',
    'revokedAt',
  ],
};
/** The one answer that has the text of a key. */
const ISSUED = {
  type: 'object',
  properties: { key: KEY, secret: { type: 'string' } },
  required: ['key', 'secret'],
};

/** Who the caller is, keys, and what goes out. */
export const ACCESS_OPERATIONS: Record<string, Operation> = {
  'GET /api/whoami': {
    id: 'getCaller',
    summary: 'Who the caller is to this server, and what it may do',
    answer: {
      status: 200,
      schema: {
        type: 'object',
        properties: {
          id: { type: 'string' },
          tenant: { type: 'string' },
          scopes: SCOPE_LIST,
          author: AUTHOR,
          conversations: PATTERNS,
        },
        required: ['id', 'tenant', 'scopes', 'author', 'conversations'],
      },
    },
  },
  'GET /api/keys': {
    id: 'listKeys',
    summary: 'The keys of a tenant, without their secrets',
    query: schemas.KeysQuery,
    answer: { status: 200, schema: listOf('keys', KEY) },
  },
  'POST /api/keys': {
    id: 'createKey',
    summary: 'A new key; its secret is in this answer and cannot be had again',
    body: schemas.NewKeyBody,
    answer: { status: 201, schema: ISSUED },
    gives: { keys: '/key/id' },
  },
  'POST /api/keys/{id}/rotate': {
    id: 'rotateKey',
    summary: 'A new secret for a key; the old one is good for `graceMs` more',
    query: schemas.KeysQuery,
    body: schemas.RotateKeyBody,
    answer: { status: 200, schema: ISSUED },
  },
  'DELETE /api/keys/{id}': {
    id: 'revokeKey',
    summary: 'Revoke a key; its streams end within 5 seconds',
    query: schemas.KeysQuery,
    answer: { status: 200, schema: { type: 'object', properties: { key: KEY } } },
  },
  'GET /api/webhooks': {
    id: 'listWebhooks',
    summary: 'Webhooks, and how their deliveries go',
    query: schemas.KeysQuery,
    answer: { status: 200 },
  },
  'POST /api/webhooks': {
    id: 'createWebhook',
    summary: 'A new webhook; the only answer with its secret',
    query: schemas.KeysQuery,
    body: NewWebhook,
    answer: { status: 201 },
    gives: { webhooks: '/webhook/id' },
  },
  'GET /api/webhooks/{id}': {
    id: 'getWebhook',
    summary: 'A webhook, and how its deliveries go',
    query: schemas.KeysQuery,
    answer: { status: 200 },
  },
  'DELETE /api/webhooks/{id}': {
    id: 'deleteWebhook',
    summary: 'Sends it nothing more',
    query: schemas.KeysQuery,
    answer: { status: 200 },
  },
  'POST /api/webhooks/{id}/test': {
    id: 'testWebhook',
    summary: 'Sends a ping now, and says what was answered',
    query: schemas.KeysQuery,
    answer: { status: 200 },
  },
  'POST /api/webhooks/{id}/rotate': {
    id: 'rotateWebhook',
    summary: 'A new secret; the old one signs too for 24 hours',
    query: schemas.KeysQuery,
    answer: { status: 200 },
  },
  'GET /api/nostr': {
    id: 'getRelays',
    summary: 'The relays of the troupe, as far as this process holds them; for administrators of the server',
    answer: { status: 200, schema: { type: 'object', properties: { nostr: { type: ['object', 'null'] } } } },
  },
};
