// Asks the fake Google for a mailbox and calendars with Google's own clients for
// JavaScript, and compares the answers with what the fake says it holds.
//
// usage: node check.mjs URL EMAIL
//
// Prints "N passed, M failed" and exits 1 unless M is 0.

import { createHash } from 'node:crypto';
import { calendar as calendarClient } from '@googleapis/calendar';
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

// A page token alone goes on with the question of the first page.
const starred = (await gmail.messages.list({ userId: 'me', q: 'in:inbox', maxResults: 1 })).data;
const next = (await gmail.messages.list({ userId: 'me', pageToken: starred.nextPageToken })).data;
check('page token alone', next.messages?.length > 0 && next.messages.every((m) => held.get(m.id).labels.includes('INBOX')));

const text = 'Subject: inserted\r\n\r\nby a client\r\n';
const sha256 = createHash('sha256').update(text).digest('hex');
const inserted = (await gmail.messages.insert({ userId: 'me', requestBody: { raw: Buffer.from(text).toString('base64url'), labelIds: ['INBOX'] } })).data;
const imported = (await gmail.messages.import(
  { userId: 'me', requestBody: { labelIds: ['INBOX'] }, media: { mimeType: 'message/rfc822', body: text } },
  { rootUrl: `${url}/` }, // for uploads the client does not look at its own
)).data;
const after = await (await fetch(`${url}/_fake/mailbox?user=${encodeURIComponent(email)}`)).json();
for (const { id } of [inserted, imported]) {
  const message = after.messages.find((m) => m.id === id);
  check(`added ${id}`, message?.sha256 === sha256 && message.labels.join() === 'INBOX', JSON.stringify(message));
}

const calendar = calendarClient({
  version: 'v3',
  rootUrl: `${url}/`,
  headers: { Authorization: `Bearer ${email}` },
  retry: false,
});
const truth = (await (await fetch(`${url}/_fake/calendar?account=${encodeURIComponent(email)}`)).json()).calendars[0];
const events = [];
let eventsToken;
do { // the second page and those after it by their tokens alone
  const question = eventsToken ? { pageToken: eventsToken } : { maxResults: 7, showDeleted: true };
  const page = (await calendar.events.list({ calendarId: 'primary', ...question })).data;
  events.push(...page.items.map((e) => e.id));
  eventsToken = page.nextPageToken;
} while (eventsToken);
check('events', JSON.stringify(events) === JSON.stringify(truth.events.map((e) => e.id)), `${events.length} events, want ${truth.events.length}`);

const none = (await calendar.events.list({ calendarId: 'primary', q: 'nothing has this word' })).data;
check('no events', none.items?.length === 0 && none.defaultReminders?.length === 0, JSON.stringify(none));

const appointment = (await calendar.events.quickAdd({ calendarId: 'primary', text: 'Appointment on 2030-06-03 10am-10:25am' })).data;
check('quickAdd', appointment.summary === 'Appointment' && appointment.start.dateTime === '2030-06-03T10:00:00Z', JSON.stringify(appointment));
const range = { timeMin: '2030-06-03T00:00:00Z', timeMax: '2030-06-03T10:10:00Z' };
const free = (await calendar.freebusy.query({ requestBody: { ...range, items: [{ id: email }, { id: 'nobody@example.com' }] } })).data;
check('busy', free.calendars[email].busy.some((b) => b.start <= '2030-06-03T10:00:00Z' && b.end === '2030-06-03T10:10:00Z'), JSON.stringify(free));
check('not to be seen', free.calendars['nobody@example.com'].errors?.[0].reason === 'notFound', JSON.stringify(free));
check('colors', (await calendar.colors.get()).data.event['1'].background === '#a4bdfc');
check('settings', (await calendar.settings.list()).data.items.some((s) => s.id === 'timezone' && s.value === truth.time_zone));
check('a setting', (await calendar.settings.get({ setting: 'weekStart' })).data.value === '0');
const rules = (await calendar.acl.list({ calendarId: 'primary' })).data.items;
check('access list', rules.length === 1 && rules[0].role === 'owner', JSON.stringify(rules));
check('a rule', (await calendar.acl.get({ calendarId: 'primary', ruleId: rules[0].id })).data.scope.value === email);

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
