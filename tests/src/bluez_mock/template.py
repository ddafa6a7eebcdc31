"""BlueZ for the tests: the template bluez5 of python-dbusmock, with what it lacks: pairing that asks the agent, the network of a
phone, the network of the adapter, and many devices at once."""

import dbus

from dbusmock import mockobject
from dbusmock.templates import bluez5
from dbusmock.templates.bluez5 import *

BUS_NAME = 'org.bluez'
MAIN_OBJ = '/'
SYSTEM_BUS = True
IS_OBJECT_MANAGER = True

MOCK = 'org.bluez.Mock'
DEVICE = 'org.bluez.Device1'
NETWORK = 'org.bluez.Network1'
NETWORK_SERVER = 'org.bluez.NetworkServer1'
AGENT = 'org.bluez.Agent1'
OBJECTS = mockobject.objects
# Kind of pairing, passkey, and bridges of the network server.
STATE = {'pairing': 'none', 'passkey': 0, 'bridge': '', 'interface': 'bnep0', 'answer': ''}


def load(mock, parameters):
    bluez5.load(mock, parameters)


def path_of(adapter, address):
    return '/org/bluez/%s/dev_%s' % (adapter, address.replace(':', '_').upper())


def call_agent(connection, method, signature, *arguments):
    """Calls the agent of the daemon. The mock objects do not know who registered it."""
    path = OBJECTS['/org/bluez'].default_agent
    names = [name for name in connection.list_names() if name.startswith(':') and is_daemon(connection, name)]
    if not path or not names:
        raise dbus.exceptions.DBusException('no agent', name='org.bluez.Error.Failed')
    return connection.call_blocking(names[0], path, AGENT, method, signature, arguments, timeout=60)


def is_daemon(connection, name):
    bus = 'org.freedesktop.DBus'
    try:
        process = connection.call_blocking(
            bus, '/org/freedesktop/DBus', bus, 'GetConnectionUnixProcessID', 's', (name,))
        with open('/proc/%d/comm' % process) as file:
            return file.read().startswith('gatewayd')
    except (dbus.exceptions.DBusException, OSError):
        return False


def ask(device):
    kind, passkey = STATE['pairing'], STATE['passkey']
    path = dbus.ObjectPath(device.path)
    try:
        if kind == 'confirm':
            call_agent(device.connection, 'RequestConfirmation', 'ou', path, dbus.UInt32(passkey))
        elif kind == 'pin':
            pin = call_agent(device.connection, 'RequestPinCode', 'o', path)
            if str(pin) != '%04d' % passkey:
                raise dbus.exceptions.DBusException('wrong PIN', name='org.bluez.Error.AuthenticationFailed')
        elif kind == 'authorize':
            call_agent(device.connection, 'RequestAuthorization', 'o', path)
    except dbus.exceptions.DBusException as error:
        if error.get_dbus_name() == 'org.bluez.Error.AuthenticationFailed':
            raise
        raise dbus.exceptions.DBusException(
            'the agent refused', name='org.bluez.Error.AuthenticationRejected')


def complete(device):
    address = device.props[DEVICE]['Address']
    adapter = device.props[DEVICE]['Adapter'].split('/')[-1]
    device.PairDevice(adapter, address, 5898764)


def pair(device):
    if device.paired:
        raise dbus.exceptions.DBusException('paired', name='org.bluez.Error.AlreadyExists')
    ask(device)
    complete(device)


def join(device, uuid):
    device.UpdateProperties(NETWORK, {'Connected': dbus.Boolean(True), 'Interface': STATE['interface']})
    return STATE['interface']


def leave(device):
    device.UpdateProperties(NETWORK, {'Connected': dbus.Boolean(False), 'Interface': ''})


def register(adapter, uuid, bridge):
    STATE['bridge'] = str(bridge)


def unregister(adapter, uuid):
    STATE['bridge'] = ''


@dbus.service.method(MOCK, in_signature='ss', out_signature='s')
def AddHost(self, name, system_name):
    path = self.AddAdapter(name, system_name)
    OBJECTS[path].AddMethods(NETWORK_SERVER, [
        ('Register', 'ss', '', register),
        ('Unregister', 's', '', unregister),
    ])
    return path


@dbus.service.method(MOCK, in_signature='sss', out_signature='s')
def AddPhone(self, adapter, address, name):
    path = self.AddDevice(adapter, address, name)
    phone = OBJECTS[path]
    phone.AddMethod(DEVICE, 'Pair', '', '', pair)
    phone.AddProperties(NETWORK, {
        'Connected': dbus.Boolean(False), 'Interface': '', 'UUID': ''})
    phone.AddMethods(NETWORK, [('Connect', 's', 's', join), ('Disconnect', '', '', leave)])
    return path


@dbus.service.method(MOCK, in_signature='su', out_signature='')
def AddDevices(self, adapter, count):
    for number in range(count):
        self.AddDevice(adapter, '00:16:3E:7F:%02X:%02X' % (number >> 8, number & 255), '')


@dbus.service.method(MOCK, in_signature='su', out_signature='')
def SetPairing(self, kind, passkey):
    STATE['pairing'], STATE['passkey'] = str(kind), int(passkey)


@dbus.service.method(MOCK, in_signature='ss', out_signature='s')
def BeginPairing(self, adapter, address):
    """Pairs as the other device would. Returns the answer of the gateway."""
    device = OBJECTS[path_of(adapter, address)]
    try:
        ask(device)
    except dbus.exceptions.DBusException as error:
        return error.get_dbus_name()
    complete(device)
    return 'paired'


@dbus.service.method(MOCK, in_signature='', out_signature='s')
def Bridge(self):
    return STATE['bridge']
