// Reads a mailbox of the fake Google with Google's own client for JavaScript,
// and compares it with what the fake says it holds.
//
// usage: node check.mjs URL EMAIL
//
// Prints "N passed, M failed" and exits 1 unless M is 0.

import { createHash } from 'node:crypto';
import { gmail as gmailClient } from '@googleapis/gmail';

const [url, email] = process.argv.slice(2);
if (!url || !email) {
  console.error('usage: node check.mjs URL EMAIL');
  process.exit(2);
}

// Bodies are fetched of so many messages, so that a minute's quota is enough.
const fetched = 100;
const inFlight = 10;

let passed = 0;
let failed = 0;
function check(what, ok, detail = '') {
  if (ok) {
    passed++;
    return;
  }
  failed++;
  console.error(`failed: ${what}${detail && `: ${detail}`}`);
}

// refused calls f and returns the error that it must end with.
async function refused(f) {
  try {
    await f();
  } catch (error) {
    return { status: error.response?.status, message: error.response?.data?.error?.message };
  }
  return {};
}

const gmail = gmailClient({
  version: 'v1',
  rootUrl: `${url}/`,
  headers: { Authorization: `Bearer ${email}` },
  retry: false,
}).users;

const state = await (await fetch(`${url}/_fake/mailbox?user=${encodeURIComponent(email)}`)).json();
const held = new Map(state.messages.map((m) => [m.id, m]));
const hidden = (m) => m.labels.includes('SPAM') || m.labels.includes('TRASH');

const profile = (await gmail.getProfile({ userId: 'me' })).data;
check('profile', profile.emailAddress === email && profile.messagesTotal === held.size, JSON.stringify(profile));
check('historyId', profile.historyId === String(state.history_id), profile.historyId);

const listed = [];
let pageToken;
do {
  const page = (await gmail.messages.list({ userId: email, maxResults: 25, pageToken })).data;
  listed.push(...(page.messages ?? []).map((m) => m.id));
  pageToken = page.nextPageToken;
} while (pageToken);
const want = state.messages.filter((m) => !hidden(m)).map((m) => m.id);
check('listing', JSON.stringify(listed) === JSON.stringify(want), `${listed.length} ids, want ${want.length}`);

const waiting = listed.slice(0, fetched);
async function fetchRaw() {
  for (let id = waiting.shift(); id; id = waiting.shift()) {
    const message = (await gmail.messages.get({ userId: 'me', id, format: 'raw' })).data;
    const raw = Buffer.from(message.raw ?? '', 'base64url');
    check(`raw of ${id}`, createHash('sha256').update(raw).digest('hex') === held.get(id).sha256);
    check(`labels of ${id}`, JSON.stringify(message.labelIds ?? []) === JSON.stringify(held.get(id).labels));
    check(`size of ${id}`, message.sizeEstimate === raw.length, `${message.sizeEstimate}`);
  }
}
await Promise.all(Array.from({ length: inFlight }, fetchRaw));

for (const id of listed.slice(0, 5)) {
  const full = (await gmail.messages.get({ userId: 'me', id })).data;
  check(`payload of ${id}`, full.payload?.partId === '' && full.payload.headers.length > 0 && !full.raw);
  const metadata = (await gmail.messages.get({ userId: 'me', id, format: 'metadata', metadataHeaders: ['Date', 'From'] })).data;
  check(`metadata of ${id}`, metadata.payload?.headers.length === 2 && !metadata.payload.body);
  const minimal = (await gmail.messages.get({ userId: 'me', id, format: 'minimal', fields: 'id,internalDate' })).data;
  check(`minimal of ${id}`, Object.keys(minimal).sort().join() === 'id,internalDate' && Number(minimal.internalDate) > 0);
}

const labels = (await gmail.labels.list({ userId: 'me' })).data.labels;
check('labels', labels.some((l) => l.id === 'INBOX' && l.type === 'system'));

const history = (await gmail.history.list({ userId: 'me', startHistoryId: profile.historyId })).data;
check('no history since now', history.history === undefined && history.historyId === profile.historyId);

const old = await refused(() => gmail.history.list({ userId: 'me', startHistoryId: '1' }));
check('history too old', old.status === 404, JSON.stringify(old));
const token = await refused(() => gmail.messages.list({ userId: 'me', pageToken: 'garbage' }));
check('bad page token', token.status === 400 && token.message === 'Invalid pageToken', JSON.stringify(token));
const gone = await refused(() => gmail.messages.get({ userId: 'me', id: '19ffffffffffffff' }));
check('message gone', gone.status === 404 && gone.message === 'Requested entity was not found.', JSON.stringify(gone));

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
